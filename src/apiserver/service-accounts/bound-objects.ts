// An index of the objects that tokens are bound to: ServiceAccounts, pods, secrets and nodes with their UIDs, and the hashes of
// the tokens in Secrets. It follows the store, so that a token becomes invalid when its object is deleted.
import type { Kind } from '../../api/kind.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { ACCOUNT_TOKEN_TYPE, INVALID_SINCE_LABEL } from '../../api/kinds/secret/account-token-secret.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import type { Secret } from '../../api/kinds/secret/secret-schema.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Entry, Store } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import { collectionPrefix, objectKey } from '../keys.ts'
import { decodeStored } from '../objects/stored-object.ts'
import { hashToken, type SecretTokenSubject } from './secret-token.ts'
import type { TokenSubject } from './token-claims.ts'

/** A token stays valid for this long after the deletionTimestamp of its object, if the object still exists. */
const DELETION_LEEWAY_MS = 60_000
/** How long issuing a token waits for its objects to be in the index. */
const INDEX_WAIT_MS_MAX = 1_000

interface IndexedObject {
  readonly uid: string
  /** Time of metadata.deletionTimestamp. */
  readonly deletionMs?: number
  /** Hash of the token that a Secret of type kubernetes.io/service-account-token contains. */
  readonly tokenHash?: string
}

export interface BoundObjects {
  /** Returns whether the account and the bound object of a token exist with the same UIDs. */
  exist(subject: TokenSubject, nowMs: number): boolean
  /** Returns whether the account exists with the same UID and is not being deleted, and the Secret contains the token. */
  secretHasToken(subject: SecretTokenSubject, tokenHash: string): boolean
  /**
   * Resolves when the index has the objects, which were read from the store, or after INDEX_WAIT_MS_MAX. On etcd the index
   * follows with a delay.
   */
  waitUntilIndexed(subject: TokenSubject): Promise<void>
  /**
   * Calls the listener when tokens may have become invalid. `namespace` is that of their accounts; undefined if it may be any.
   * There is one listener.
   */
  onEnd(listener: (namespace: string | undefined) => void): void
  follow(signal: AbortSignal): Promise<void>
}

const SECRETS_PREFIX = collectionPrefix(secretKind)
const KINDS: readonly Kind[] = [serviceAccountKind, podKind, secretKind, nodeKind]

export function createBoundObjects({ store, clock, log }: { store: Store; clock: Clock; log: Logger }): BoundObjects {
  const objects = new Map<string, IndexedObject>()
  const waiters = new Set<() => void>()
  let notifyEnd = (_namespace: string | undefined): void => {}

  /** Indexes the entry. Returns whether the previous object of the key, or its token, no longer exists. */
  function setEntry(key: string, entry: Entry | undefined): boolean {
    const previousObject = objects.get(key)
    if (!entry) return objects.delete(key)
    const object = decodeStored(entry)
    const { uid = '', deletionTimestamp } = object.metadata
    const deletionMs = deletionTimestamp ? Date.parse(deletionTimestamp) : undefined
    const tokenHash = key.startsWith(SECRETS_PREFIX) ? tokenHashOf(object as Secret) : undefined
    objects.set(key, {
      uid,
      ...(deletionMs === undefined ? {} : { deletionMs }),
      ...(tokenHash === undefined ? {} : { tokenHash }),
    })
    if (deletionMs !== undefined && deletionMs !== previousObject?.deletionMs) {
      const leewayMs = deletionMs + DELETION_LEEWAY_MS + 1 - clock.nowMs()
      if (leewayMs > 0) clock.after(leewayMs, () => notifyEnd(namespaceOf(key)))
    }
    if (!previousObject) return false
    return (
      previousObject.uid !== uid || (previousObject.tokenHash !== undefined && previousObject.tokenHash !== tokenHash)
    )
  }

  const exist = (subject: TokenSubject, nowMs: number): boolean =>
    boundKeys(subject).every(({ key, uid }) => {
      const object = objects.get(key)
      return object?.uid === uid && !(object.deletionMs !== undefined && object.deletionMs < nowMs - DELETION_LEEWAY_MS)
    })

  return {
    exist,
    secretHasToken({ namespace, serviceaccount, secretName }, tokenHash) {
      const account = objects.get(objectKey(serviceAccountKind, namespace, serviceaccount.name))
      const secret = objects.get(objectKey(secretKind, namespace, secretName))
      return account?.uid === serviceaccount.uid && !account.deletionMs && secret?.tokenHash === tokenHash
    },
    async waitUntilIndexed(subject) {
      if (exist(subject, clock.nowMs())) return
      await new Promise<void>((resolve) => {
        const stop = () => {
          waiters.delete(check)
          cancel()
          resolve()
        }
        const check = () => {
          if (exist(subject, clock.nowMs())) stop()
        }
        const cancel = clock.after(INDEX_WAIT_MS_MAX, stop)
        waiters.add(check)
      })
    },
    onEnd: (listener) => {
      notifyEnd = listener
    },
    async follow(signal) {
      const endedNamespaces = new Set<string | undefined>()
      const onEntry = (key: string, entry: Entry | undefined) => {
        if (setEntry(key, entry)) endedNamespaces.add(namespaceOf(key))
      }
      const onApplied = () => {
        for (const check of [...waiters]) check()
        for (const namespace of endedNamespaces) notifyEnd(namespace)
        endedNamespaces.clear()
      }
      const follow = (kind: Kind) => {
        const [prefix, description] = [collectionPrefix(kind), kind.plural]
        return followStore({ store, prefix, description, clock, log, signal, onEntry, onApplied })
      }
      await Promise.all(KINDS.map(follow))
    },
  }
}

/** Returns undefined for a node. */
function namespaceOf(key: string): string | undefined {
  const [, , namespace, name] = key.split('/')
  return name === undefined ? undefined : namespace
}

/** Returns the keys of the objects that must exist. The node of a pod-bound token is informational. */
function boundKeys({ namespace, serviceaccount, pod, secret, node }: TokenSubject) {
  const keys = [{ key: objectKey(serviceAccountKind, namespace, serviceaccount.name), uid: serviceaccount.uid }]
  if (pod) keys.push({ key: objectKey(podKind, namespace, pod.name), uid: pod.uid })
  if (secret) keys.push({ key: objectKey(secretKind, namespace, secret.name), uid: secret.uid })
  if (node && !pod) keys.push({ key: objectKey(nodeKind, '', node.name), uid: node.uid ?? '' })
  return keys
}

/** Returns undefined for a Secret without a token, with one that was invalidated, or that is being deleted. */
function tokenHashOf({ type, data, metadata }: Secret): string | undefined {
  if (type !== ACCOUNT_TOKEN_TYPE || !data?.token || metadata.deletionTimestamp) return undefined
  if (metadata.labels?.[INVALID_SINCE_LABEL]) return undefined
  return hashToken(Buffer.from(data.token, 'base64').toString('utf8'))
}
