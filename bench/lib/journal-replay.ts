// Records the transactions of provisioned claims and replays them on a separate store, alternately with and without the
// journal. The rest of the server does not run, so the journal is a large part of the measured time, and its cost can be
// measured on a busy machine.

import { Registry } from 'prom-client'
import type { Activity } from '../../src/api/kinds/operation/activity-schema.ts'
import {
  createJournal,
  JOURNAL_LIMITS,
  type Journal,
  type JournalTransaction,
  mergeUnmerged,
} from '../../src/apiserver/index.ts'
import { registerStepMetrics } from '../../src/apiserver/timeline/step-metrics.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { activityOfAttempt, activityOfCall, startOf } from '../../src/runtime/operations/activity-of.ts'
import type { ActivityListener } from '../../src/runtime/operations/registry.ts'
import type { Outcome } from '../../src/runtime/outcome.ts'
import { openLmdbStore, type Store, type TransactionView, type Write } from '../../src/store/index.ts'

/** These rounds compile the code and are not measured. */
const WARM_UP_ROUNDS = 2

type PlannedChanges = Parameters<JournalTransaction['withRecords']>[2]

/** The transactions of one group commit, with the activities that were recorded before each of them. */
type RecordedGroup = {
  readonly writes: readonly Write[]
  readonly changes: PlannedChanges
  readonly activities: Activity[]
}[]

/** Records the transactions of a server while it keeps no journal. */
export class TransactionRecorder {
  readonly groups: RecordedGroup[] = []
  #view: TransactionView | undefined
  #activities: Activity[] = []

  readonly transaction: JournalTransaction = {
    withRecords: (view, writes, changes) => {
      if (view !== this.#view) this.groups.push([])
      this.#view = view
      // The value of a write can change until its group commit is written.
      const fixedWrites = writes.map((write) => ('put' in write ? { put: write.put, value: write.value } : write))
      this.groups.at(-1)!.push({ writes: fixedWrites, changes, activities: this.#activities })
      this.#activities = []
      return writes
    },
    settle: () => {},
  }

  addActivity(activity: Activity): void {
    this.#activities.push(activity)
  }
}

export interface ReplayTimes {
  /** CPU time of each replay. */
  readonly withJournalMs: readonly number[]
  readonly withoutJournalMs: readonly number[]
}

export async function replayInTurns(
  dir: string,
  groups: readonly RecordedGroup[],
  rounds: number,
): Promise<ReplayTimes> {
  const clock = systemClock()
  const store = await openLmdbStore({ dir, clock })
  const journal = createJournal({ clock, random: systemRandom(), isStoreShared: false })
  registerStepMetrics(new Registry(), journal.steps)
  const recordActivity = activityRecorder(journal)
  const times = { withJournalMs: [] as number[], withoutJournalMs: [] as number[] }
  let mergeMs = 0
  const measure = async (current: Journal | undefined) => {
    global.gc?.({ type: 'minor' })
    const startMs = cpuMs()
    for (const group of groups) await replayGroup(store, current, group, recordActivity)
    const mergeStartMs = cpuMs()
    if (current) await mergeUnmerged(store, current.unmergedChunks!, JOURNAL_LIMITS)
    const roundMergeMs = cpuMs() - mergeStartMs
    global.gc?.({ type: 'minor' })
    mergeMs += roundMergeMs
    return cpuMs() - startMs - roundMergeMs
  }
  try {
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      const withJournalFirst = round % 2 === 0
      const first = await measure(withJournalFirst ? journal : undefined)
      const second = await measure(withJournalFirst ? undefined : journal)
      if (round < 0) {
        mergeMs = 0
        continue
      }
      times.withJournalMs.push(withJournalFirst ? first : second)
      times.withoutJournalMs.push(withJournalFirst ? second : first)
    }
    // Chunks are merged in only a few of the rounds, so the median would omit the cost of merging. Add its average to each round.
    return { ...times, withJournalMs: times.withJournalMs.map((ms) => ms + mergeMs / rounds) }
  } finally {
    await store.close()
  }
}

const replayGroup = (
  store: Store,
  journal: Journal | undefined,
  group: RecordedGroup,
  recordActivity: (activity: Activity) => void,
): Promise<unknown> => Promise.all(group.map((recorded) => replay(store, journal, recorded, recordActivity)))

async function replay(
  store: Store,
  journal: Journal | undefined,
  { writes, changes, activities }: RecordedGroup[number],
  recordActivity: (activity: Activity) => void,
): Promise<void> {
  if (!journal) {
    await store.transact(() => writes)
    return
  }
  const transaction = journal.begin()
  await store.transact((view) => {
    for (const activity of activities) recordActivity(activity)
    return transaction.withRecords(view, writes, changes)
  })
  transaction.settle(true)
}

/** Returns a function that passes an activity to the journal as the registry of operations does. */
function activityRecorder(journal: Journal): (activity: Activity) => void {
  let listener: ActivityListener = () => {}
  journal.recordActivitiesOf({
    process: 'stowage@bench:1',
    subscribeActivities(subscribed) {
      listener = subscribed
      return () => {}
    },
  })
  return (activity) => {
    const startMs = startOf(activity, Date.now())
    listener(rebuild(activity, startMs), startMs)
  }
}

/** Builds the activity again, because the registry of operations builds it only for the journal. */
function rebuild(activity: Activity, startMs: number): Activity {
  const { durationMs, result, message, object, component = '', operation = '', attempt = 1 } = activity
  const { driver = '', method, volume = '' } = activity
  if (method) return activityOfCall({ driver, method, code: result, volume, durationMs }, startMs)
  const outcome = (message === undefined ? { is: 'done' } : { is: 'stuck', message }) as Outcome
  const subject = { object: object as Parameters<typeof activityOfAttempt>[1]['object'], operation }
  return activityOfAttempt({ key: '' as never, durationMs, attempt, outcome }, subject, component, startMs)!
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
