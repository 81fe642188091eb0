// Records the intents of a provisioner in an annotation of one Lease, for API servers without atomic commits. One update
// records the intents of all claims that wait for it, and removes those that are no longer needed. The alternative is a
// finalizer on each claim (intent.ts), which takes two requests per claim.
//
// An entry contains the claim, so that the next process can repeat the call to the storage after the claim was deleted. The
// holder of the Lease is the process that writes it. Every update has the resourceVersion of the last one as a
// precondition: once a successor has opened the journal, the earlier process cannot record another intent.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { isAlreadyExists, isConflict, isMissingRight } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { find } from '../../client/find.ts'
import type { Client, ObjectRef } from '../../client/index.ts'
import { NotLeaderError } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { charactersOf, entryOf, formatEntries, type IntentEntry, parseEntries } from './intent-entries.ts'

export const INTENTS_ANNOTATION = 'provisioning.stowage.dev/intents'

export interface IntentJournalOptions {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** The Lease whose annotation contains the journal. */
  readonly ref: ObjectRef
  /** Unique for every term, for example a uuid. */
  readonly identity: string
}

export interface IntentJournal {
  /**
   * Makes this process the only writer, and returns the claims whose intents earlier processes have recorded. Must be
   * called before the other functions.
   */
  open(): Promise<readonly Claim[]>
  /** Whether the intent of the claim with this uid is recorded and not about to be removed. */
  has(uid: string): boolean
  /**
   * Records the intent of a claim. Returns false if the journal has no space, or is not used because the server has atomic
   * commits or denies it. Throws ApiError, or NotLeaderError if another process has opened the journal.
   */
  add(claim: Claim): Promise<boolean>
  /** Checks that no other process has opened the journal. Throws ApiError or NotLeaderError. */
  confirm(): Promise<void>
  /** Removes an intent with the next update, which follows within ten seconds. */
  remove(uid: string): void
  /** Resolves when the removal of the intent is recorded, or immediately if it is not about to be removed. Throws like `add`. */
  whenRemoved(uid: string): Promise<void>
  /** Records the removals that have not been recorded yet. Does not throw. */
  close(): Promise<void>
  /** Returns a description of the entry that an operator must remove to abandon the intent. */
  describe(uid: string): string
}

/** The minimum time between two updates while few claims wait: one update then records the intents of many claims. */
const UPDATE_INTERVAL_MS = 50
/** An update for at least this many claims does not wait. */
const FULL_UPDATE_CLAIMS = 24
/**
 * The delay of an update that only removes intents. Until then the next update for a claim removes them too, which needs no
 * request of its own; after a crash, the next process finds that their volumes exist.
 */
const REMOVAL_DELAY_MS = 10_000
/** An API server accepts annotations of 256 KiB. Intents beyond this limit become finalizers of their claims. */
const JOURNAL_CHARACTERS_MAX = 200_000
/** The Lease may be edited or deleted at the same time. */
const CONFLICTS_MAX = 5

interface Addition {
  readonly entry: IntentEntry
  resolve(isAdded: boolean): void
  reject(error: unknown): void
}

interface RemovalWaiter {
  resolve(): void
  reject(error: unknown): void
}

export function createIntentJournal({ client, clock, log, ref, identity }: IntentJournalOptions): IntentJournal {
  /** The recorded entries by uid. */
  let entries = new Map<string, IntentEntry>()
  let additions = new Map<string, Addition>()
  const removals = new Set<string>()
  let removalWaiters: RemovalWaiter[] = []
  /** The Lease after the last update. Undefined if the result of an update is unknown. */
  let lease: Readonly<Lease> | undefined
  let isUsed = false
  let updateInProgress: Promise<void> | undefined
  let updatedAtMs = Number.NEGATIVE_INFINITY
  let scheduled: { readonly atMs: number; cancel(): void } | undefined
  let confirmation: Promise<void> | undefined

  async function open(): Promise<readonly Claim[]> {
    isUsed = !(await client.commitsAtomically())
    try {
      return await takeOver()
    } catch (error) {
      if (!isMissingRight(error)) throw error
      log.warn({ err: error, lease: leaseName }, 'intents are recorded as finalizers, because the journal is denied')
      isUsed = false
      return []
    }
  }

  async function takeOver(): Promise<readonly Claim[]> {
    for (let conflicts = 0; ; conflicts++) {
      const current = await find(client, leaseKind, ref)
      if (!current && !isUsed) return []
      const recordedEntries = parseEntries(current?.metadata.annotations?.[INTENTS_ANNOTATION], place)
      try {
        lease = current ? await client.update(leaseKind, withHolder(current)) : await createLease()
      } catch (error) {
        if ((!isConflict(error) && !isAlreadyExists(error)) || conflicts >= CONFLICTS_MAX) throw error
        continue
      }
      entries = recordedEntries
      return [...entries.values()].map(({ claim }) => claim)
    }
  }

  const createLease = () => client.create(leaseKind, { metadata: { ...ref }, spec: { holderIdentity: identity } })
  const withHolder = (current: Readonly<Lease>): Lease => ({
    ...current,
    spec: { ...current.spec, holderIdentity: identity },
  })

  function add(claim: Claim): Promise<boolean> {
    if (!isUsed) return Promise.resolve(false)
    const { uid } = claim.metadata
    removals.delete(uid)
    return new Promise((resolve, reject) => {
      additions.set(uid, { entry: entryOf(claim), resolve, reject })
      scheduleAdditions()
    })
  }

  const scheduleAdditions = () =>
    schedule(additions.size >= FULL_UPDATE_CLAIMS ? clock.monotonicMs() : updatedAtMs + UPDATE_INTERVAL_MS)

  function remove(uid: string): void {
    if (!entries.has(uid) || removals.has(uid)) return
    removals.add(uid)
    schedule(clock.monotonicMs() + REMOVAL_DELAY_MS)
  }

  function whenRemoved(uid: string): Promise<void> {
    if (!removals.has(uid)) return Promise.resolve()
    return new Promise((resolve, reject) => {
      removalWaiters.push({ resolve, reject })
      schedule(updatedAtMs + UPDATE_INTERVAL_MS)
    })
  }

  /** Schedules an update unless an earlier one is scheduled. During an update, the next one is scheduled when it ends. */
  function schedule(atMs: number): void {
    if (updateInProgress || (scheduled && scheduled.atMs <= atMs)) return
    scheduled?.cancel()
    const cancel = clock.after(Math.max(0, atMs - clock.monotonicMs()), () => void startUpdate())
    scheduled = { atMs, cancel }
  }

  function startUpdate(): Promise<void> {
    scheduled?.cancel()
    scheduled = undefined
    updatedAtMs = clock.monotonicMs()
    updateInProgress = update().finally(() => {
      updateInProgress = undefined
      if (additions.size > 0 || removalWaiters.length > 0) scheduleAdditions()
      else if (removals.size > 0) schedule(clock.monotonicMs() + REMOVAL_DELAY_MS)
    })
    return updateInProgress
  }

  /** Records all changes. Does not throw. */
  async function update(): Promise<void> {
    const [batch, waiters, removedUids] = [additions, removalWaiters, [...removals]]
    additions = new Map()
    removalWaiters = []
    try {
      const addedUids = await recordChanges(batch, removedUids)
      for (const uid of removedUids) removals.delete(uid)
      for (const [uid, { resolve }] of batch) resolve(addedUids.has(uid))
      for (const { resolve } of waiters) resolve()
    } catch (error) {
      for (const { reject } of [...batch.values(), ...waiters]) reject(error)
      if (batch.size === 0 && waiters.length === 0) {
        log.warn({ err: error, lease: leaseName }, 'completed intents could not be removed from the journal')
      }
    }
  }

  /** Returns the uids of the entries that were added. Entries for which there is no space are omitted. */
  async function recordChanges(
    batch: ReadonlyMap<string, Addition>,
    removedUids: readonly string[],
  ): Promise<ReadonlySet<string>> {
    for (let conflicts = 0; ; conflicts++) {
      const current = lease ?? (await readLease())
      const next = new Map(entries)
      for (const uid of removedUids) next.delete(uid)
      const addedUids = addWhileFitting(next, batch)
      const annotations = { ...current.metadata.annotations, [INTENTS_ANNOTATION]: formatEntries(next) }
      lease = undefined // until the result is known
      try {
        lease = await client.update(leaseKind, { ...current, metadata: { ...current.metadata, annotations } })
      } catch (error) {
        if (!isConflict(error) || conflicts >= CONFLICTS_MAX) throw error
        continue
      }
      entries = next
      return addedUids
    }
  }

  /**
   * Reads the Lease after a conflict or an unknown result. Entries that only the Lease has belong to an update that
   * failed for its callers; the next update removes them. Entries that an operator has removed from the Lease are dropped.
   */
  async function readLease(): Promise<Readonly<Lease>> {
    const current = await find(client, leaseKind, ref)
    if (!current) return createLease()
    assertHolder(current)
    const recordedEntries = parseEntries(current.metadata.annotations?.[INTENTS_ANNOTATION], place)
    for (const uid of entries.keys()) if (!recordedEntries.has(uid)) entries.delete(uid)
    return current
  }

  function assertHolder({ spec }: Readonly<Lease>): void {
    if (spec?.holderIdentity === identity) return
    throw new NotLeaderError(`another process has opened the journal of intents ${leaseName}`)
  }

  function confirm(): Promise<void> {
    confirmation ??= find(client, leaseKind, ref)
      .then((current) => current && assertHolder(current))
      .finally(() => {
        confirmation = undefined
      })
    return confirmation
  }

  async function close(): Promise<void> {
    await updateInProgress
    if (removals.size > 0) await startUpdate()
    scheduled?.cancel()
  }

  const leaseName = `${ref.namespace}/${ref.name}`
  const place = annotationText(ref)
  return {
    open,
    has: (uid) => entries.has(uid) && !removals.has(uid),
    add,
    confirm,
    remove,
    whenRemoved,
    close,
    describe: (uid) => `the entry "${uid}" from ${place}`,
  }
}

/** Adds entries while there is space. Returns their uids. */
function addWhileFitting(entries: Map<string, IntentEntry>, batch: ReadonlyMap<string, Addition>): ReadonlySet<string> {
  const addedUids = new Set<string>()
  let characters = 2
  for (const [uid, entry] of entries) characters += charactersOf(uid, entry)
  for (const [uid, { entry }] of batch) {
    if (!entries.has(uid)) characters += charactersOf(uid, entry)
    if (characters > JOURNAL_CHARACTERS_MAX) break
    entries.set(uid, entry)
    addedUids.add(uid)
  }
  return addedUids
}

/** Returns the place of the entries, for messages. */
export const annotationText = ({ namespace, name }: ObjectRef): string =>
  `the annotation "${INTENTS_ANNOTATION}" of the lease "${namespace}/${name}"`
