// Fills Secrets of type kubernetes.io/service-account-token with a token of their account, the CA and the namespace, and
// deletes those whose account does not exist. Users create these Secrets.
import type { Stored } from '../../api/kind.ts'
import {
  ACCOUNT_NAME_ANNOTATION,
  ACCOUNT_TOKEN_TYPE,
  ACCOUNT_UID_ANNOTATION,
} from '../../api/kinds/secret/account-token-secret.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import type { Secret } from '../../api/kinds/secret/secret-schema.ts'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { ServiceAccount } from '../../api/kinds/service-account/service-account-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { find } from '../../client/find.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type Controller, createController, done, type Outcome, source } from '../../runtime/index.ts'

/** The account and the Secret that a token is for. */
export interface SecretTokenRequest {
  readonly namespace: string
  readonly serviceaccount: { readonly name: string; readonly uid: string }
  readonly secretName: string
}

export interface AccountTokenControllerDeps extends ControllerDeps {
  /** The API server's CA as PEM. */
  readonly rootCa: string
  /** Returns a signed token that is valid as long as the Secret contains it. */
  createToken(request: SecretTokenRequest): string
}

const NAME = 'account-tokens'
const BY_ACCOUNT = 'account of a token'

export function createAccountTokenController(deps: AccountTokenControllerDeps): Controller {
  const { client, caches, clock, random, log, metrics, rootCa, createToken } = deps
  const accounts = caches.of(serviceAccountKind)
  const secrets = caches.of(secretKind, { fieldSelector: `type=${ACCOUNT_TOKEN_TYPE}` })
  secrets.addIndex(BY_ACCOUNT, accountKeysOf)

  async function reconcile(key: ObjectKey): Promise<Outcome> {
    const secret = secrets.get(key)
    if (!secret || secret.metadata.deletionTimestamp) return done
    const account = await findAccount(secret)
    const newSecret = account ? planContent(secret, account) : undefined
    try {
      if (!account) {
        await client.delete(secretKind, refOfKey(key), { uid: secret.metadata.uid })
        log.info({ secret: key, account: accountNameOf(secret) }, 'deleted the token of an account that does not exist')
      } else if (newSecret) await client.update(secretKind, newSecret)
      return done
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return done // the Secret was changed or deleted; a change causes another reconcile
      throw error
    }
  }

  /** Returns a token's account. Reads it from the server if the cache may be behind. */
  async function findAccount(secret: Readonly<Stored<Secret>>): Promise<Readonly<Stored<ServiceAccount>> | undefined> {
    const ref = { namespace: secret.metadata.namespace, name: accountNameOf(secret) }
    const expectedUid = secret.metadata.annotations?.[ACCOUNT_UID_ANNOTATION]
    const isExpected = (account: Readonly<Stored<ServiceAccount>> | undefined) =>
      account !== undefined && (!expectedUid || account.metadata.uid === expectedUid)
    const cachedAccount = accounts.get(ref)
    if (isExpected(cachedAccount)) return cachedAccount
    const currentAccount = await find(client, serviceAccountKind, ref)
    return isExpected(currentAccount) ? currentAccount : undefined
  }

  /** Returns the Secret with its missing fields, or undefined if it is complete or cannot be changed. */
  function planContent(
    secret: Readonly<Stored<Secret>>,
    account: Readonly<Stored<ServiceAccount>>,
  ): Secret | undefined {
    const { data = {}, metadata } = secret
    const namespace = metadata.namespace ?? ''
    const ca = toBase64(rootCa)
    if ((data.token && data['ca.crt'] === ca && data.namespace) || secret.immutable) return undefined
    const { name, uid } = account.metadata
    const signToken = () => createToken({ namespace, serviceaccount: { name, uid }, secretName: metadata.name })
    return {
      ...secret,
      metadata: {
        ...metadata,
        annotations: { ...metadata.annotations, [ACCOUNT_NAME_ANNOTATION]: name, [ACCOUNT_UID_ANNOTATION]: uid },
      },
      data: {
        ...data,
        'ca.crt': ca,
        namespace: data.namespace || toBase64(namespace),
        token: data.token || toBase64(signToken()),
      },
    }
  }

  const controller = createController({
    name: NAME,
    operation: { component: 'account-tokens', name: 'IssueToken' },
    clock,
    random,
    log,
    metrics,
    sources: [
      source({ cache: secrets, keysOf: (secret) => [keyOfObject(secret)] }),
      source({
        cache: accounts,
        keysOf: (account) => secrets.byIndex(BY_ACCOUNT, keyOfObject(account)).map((secret) => keyOfObject(secret)),
      }),
    ],
    reconcile,
  })
  metrics?.queues.add(controller.queue)
  return controller
}

const accountNameOf = ({ metadata }: Readonly<Secret>): string => metadata.annotations?.[ACCOUNT_NAME_ANNOTATION] ?? ''

const accountKeysOf = (secret: Readonly<Secret>): string[] => [
  keyOfObject({ metadata: { namespace: secret.metadata.namespace, name: accountNameOf(secret) } }),
]

const toBase64 = (text: string): string => Buffer.from(text).toString('base64')
