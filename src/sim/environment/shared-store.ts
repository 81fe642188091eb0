// The store of an API server that shares its data with other API servers, as on etcd: the production transactor decides on a
// copy that lags behind, and a commit succeeds only if every key it read is unchanged. `sharedStore` stands for etcd.

import type { CommitResult, ConditionalTransaction } from '../../store/etcd/commit-queue.ts'
import { Transactor } from '../../store/etcd/transactor.ts'
import type { Entry, Revision, Store, StoreEvent, Write } from '../../store/index.ts'
import type { Env } from './process.ts'
import type { Simulation } from './simulation.ts'

export interface SharedStoreOptions {
  readonly simulation: Simulation
  readonly env: Env
  readonly sharedStore: Store
  /** The longest delay of a change to the copy, and of a request to the store. */
  readonly latencyMs: number
}

export async function shareStore({ simulation, env, sharedStore, latencyMs }: SharedStoreOptions): Promise<Store> {
  const random = simulation.random(`copy of ${env.name}`)
  const delay = () => env.clock.sleep(latencyMs * random())
  const copy = await createCopy()

  const transactor = new Transactor({
    get: copy.get,
    list: copy.list,
    revision: () => copy.revision(),
    catchUp: copy.waitFor,
    refresh: async () => {
      await delay()
      await copy.waitFor(sharedStore.revision)
    },
    operationsMax: OPERATIONS_MAX,
    commit: async (write) => {
      await delay()
      write.onSend?.()
      const commit = await env.pass(commitWrite(write))
      await copy.waitFor(commit.revision)
      return commit
    },
  })
  return {
    get revision() {
      return copy.revision()
    },
    get: (key) => env.pass(sharedStore.get(key)),
    list: (options) => env.pass(sharedStore.list(options)),
    transact: (decide) => transactor.transact(decide),
    watch: (options) => sharedStore.watch(options),
    stats: () => sharedStore.stats(),
    close: () => transactor.idle(),
  }

  async function commitWrite({ reads, writes }: ConditionalTransaction): Promise<CommitResult> {
    let isCommitted = false
    const { revision, revisions } = await sharedStore.transact((view) => {
      isCommitted = [...reads].every(([key, readRevision]) => (view.get(key)?.modRevision ?? 0) === readRevision)
      return isCommitted ? writes.map(disableCoalescing) : []
    })
    return { isCommitted, revision: isCommitted ? (revisions[0] ?? revision) : revision }
  }

  async function createCopy() {
    const { entries, revision: startRevision } = await env.pass(sharedStore.list({ prefix: '' }))
    const entriesByKey = new Map<string, Entry>(entries.map((entry) => [entry.key, entry]))
    const pendingEvents: (readonly StoreEvent[])[] = []
    let waiters: { readonly revision: Revision; readonly resolve: () => void }[] = []
    let revision = startRevision
    sharedStore.watch({
      prefix: '',
      afterRevision: startRevision,
      onEnd: () => {},
      onEvents: (events) => {
        pendingEvents.push(events)
        env.clock.after(latencyMs * random(), () => applyEvents(pendingEvents.shift() ?? []))
      },
    })
    /** Applies changes in their order, regardless of which delay ends first. */
    function applyEvents(events: readonly StoreEvent[]): void {
      for (const { key, entry } of events) {
        if (entry) entriesByKey.set(key, entry)
        else entriesByKey.delete(key)
      }
      revision = events.at(-1)?.revision ?? revision
      const reachedWaiters = waiters.filter((waiter) => waiter.revision <= revision)
      waiters = waiters.filter((waiter) => waiter.revision > revision)
      for (const { resolve } of reachedWaiters) resolve()
    }
    return {
      get: (key: string) => entriesByKey.get(key),
      list: (prefix: string) =>
        [...entriesByKey.values()].filter(({ key }) => key.startsWith(prefix)).sort((a, b) => (a.key < b.key ? -1 : 1)),
      revision: () => revision,
      waitFor: (target: Revision): Promise<void> =>
        target <= revision
          ? Promise.resolve()
          : new Promise((resolve) => void waiters.push({ revision: target, resolve })),
    }
  }
}

/** The default of etcd's --max-txn-ops. */
const OPERATIONS_MAX = 128

/** A chain (store/etcd/chain.ts) already writes each total only once, and etcd keeps every revision that the chain writes. */
const disableCoalescing = (write: Write): Write =>
  'put' in write && write.isCoalescable ? { put: write.put, value: write.value } : write
