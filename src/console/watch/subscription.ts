// One watch of a tab: tracks the objects that the tab has not received yet, and builds its next message. Several changes to an
// object between two messages are merged. watch-socket.ts decides when to send the next message.
import type { ApiError } from '../../api/status-error.ts'
import { PAGE_SIZE } from './read-collection.ts'
import type { ChangeType, CollectionError, CollectionSubscriber, WatchedCollection } from './watched-collection.ts'

/** A message ends after the object that exceeds this length, so that the socket's buffer remains small. */
const MESSAGE_BYTES_MAX = 256 * 1024
/** The revision of a tab without the complete list, from which it cannot resume. */
const NO_REVISION = '0'
const CHANGE_TYPES = ['ADDED', 'MODIFIED', 'DELETED'] as const

export interface Subscription extends CollectionSubscriber {
  /** Whether the tab has the complete list. Changes are then sent in batches. */
  readonly isSynced: boolean
  /** Returns the text of the next message, or undefined if there is nothing to send. */
  nextMessage(): string | undefined
}

export interface SubscriptionOptions {
  readonly id: number
  /** The revision that the tab has. */
  readonly revision: string | undefined
  /** Called when there is something to send. */
  onPending(): void
}

export function createSubscription(
  collection: WatchedCollection,
  { id, revision, onPending }: SubscriptionOptions,
): Subscription {
  const { state } = collection
  const pending: Readonly<Record<ChangeType, Set<string>>> = {
    ADDED: new Set(),
    MODIFIED: new Set(),
    DELETED: new Set(),
  }
  /** Everything up to this revision has been sent. Undefined before the list is complete. */
  let sentRevision: string | undefined
  let needsReset = true
  let needsSynced = false
  let error: CollectionError | undefined

  const changes = revision === undefined ? undefined : state.changedSince(Number(revision))
  if (changes && collection.revision !== undefined) {
    needsReset = false
    sentRevision = revision
    for (const uid of changes.modified) pending.MODIFIED.add(uid)
    for (const uid of changes.deleted) pending.DELETED.add(uid)
  } else {
    for (const uid of state.uids()) pending.ADDED.add(uid)
  }
  needsSynced = collection.revision !== undefined
  error = collection.error

  const countPending = () => pending.ADDED.size + pending.MODIFIED.size + pending.DELETED.size

  /** Removes uids from the set and returns the JSON of their objects, up to the limits of a message. */
  function takeObjects(type: ChangeType): string {
    const jsons: string[] = []
    let bytes = 0
    for (const uid of pending[type]) {
      pending[type].delete(uid)
      const entry = type === 'DELETED' ? state.getDeleted(uid) : state.get(uid)
      if (!entry) continue
      jsons.push(entry.json)
      bytes += entry.json.length
      if (jsons.length >= PAGE_SIZE || bytes >= MESSAGE_BYTES_MAX) break
    }
    return jsons.join(',')
  }

  return {
    get isSynced() {
      return sentRevision !== undefined
    },
    onChange(uid, type) {
      if (type === 'DELETED') {
        // The tab does not know an object whose addition was not sent.
        if (pending.ADDED.delete(uid)) return
        pending.MODIFIED.delete(uid)
        pending.DELETED.add(uid)
      } else if (!pending.ADDED.has(uid)) {
        pending[type].add(uid)
      }
      onPending()
    },
    onSynced() {
      needsSynced = true
      error = undefined
      onPending()
    },
    onError(failure) {
      error = failure
      onPending()
    },
    nextMessage() {
      if (error) {
        const failure = error
        error = undefined
        return JSON.stringify({ id, type: 'ERROR', ...failure })
      }
      if (needsReset) {
        if (state.size === 0 && collection.revision === undefined) return undefined // the first page has not arrived yet
        needsReset = false
        return JSON.stringify({ id, type: 'RESET' })
      }
      const type = CHANGE_TYPES.find((candidate) => pending[candidate].size > 0)
      if (type !== undefined) {
        const objects = takeObjects(type)
        const isListed = sentRevision !== undefined
        if (!isListed && type !== 'DELETED') return `{"id":${id},"type":"ITEMS","objects":[${objects}]}`
        if (isListed && countPending() === 0) {
          sentRevision = collection.revision ?? sentRevision
          needsSynced = false
        }
        return `{"id":${id},"type":"${type}","objects":[${objects}],"rev":${JSON.stringify(sentRevision ?? NO_REVISION)}}`
      }
      if (!needsSynced || collection.revision === undefined) return undefined
      needsSynced = false
      sentRevision = collection.revision
      return JSON.stringify({ id, type: 'SYNCED', rev: sentRevision })
    },
  }
}

/** Returns the message for a watch that was rejected before it started. */
export const formatRejection = (id: number, { code, reason, message }: ApiError): string =>
  JSON.stringify({ id, type: 'ERROR', code, reason, message })
