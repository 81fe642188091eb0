// A reference model of a store that keeps the state at every revision, and assertions that compare a store with it.
import { expect } from 'vitest'
import { CompactedError, type HistoryOptions, type Revision, type Store } from '../store.ts'
import { collectEvents, formatEvent, text, waitUntil } from './store.fixture.ts'

export type WriteText = { put: string; value: string } | { delete: string }

export interface HistoryModel {
  /** The state at every revision, from 0 on. */
  readonly states: ReadonlyMap<string, string>[]
  /** All changes, formatted like formatEvent(). */
  readonly changes: { readonly key: string; readonly revision: Revision; readonly formatted: string }[]
  transact(writes: readonly WriteText[]): Revision
  wouldChange(writes: readonly WriteText[]): boolean
}

export function createModel(): HistoryModel {
  const states: Map<string, string>[] = [new Map()]
  const changes: HistoryModel['changes'] = []
  const effectiveWrites = (writes: readonly WriteText[]) =>
    writes.filter((write) => 'put' in write || states.at(-1)?.has(write.delete))
  return {
    states,
    changes,
    wouldChange: (writes) => effectiveWrites(writes).length > 0,
    transact(writes) {
      for (const write of effectiveWrites(writes)) {
        const state = new Map(states.at(-1))
        const revision = states.length
        const key = 'put' in write ? write.put : write.delete
        const previousText = state.has(key) ? `<${state.get(key)}` : ''
        if ('put' in write) state.set(key, write.value)
        else state.delete(key)
        const formatted = 'put' in write ? `put ${key}@${revision}=${write.value}` : `delete ${key}@${revision}`
        changes.push({ key, revision, formatted: formatted + previousText })
        states.push(state)
      }
      return states.length - 1
    },
  }
}

/** Expects lists and watches of the store to match the model, or to fail with CompactedError. */
export async function expectModel(store: Store, model: HistoryModel, history: HistoryOptions): Promise<void> {
  expect(store.revision).toBe(model.states.length - 1)
  expect(store.stats().keys).toBe(model.states.at(-1)?.size)
  for (const prefix of ['', 'b/', 'c']) {
    const oldestRevision = await expectStates(store, model, prefix)
    await expectChanges(store, model, { prefix, afterRevision: oldestRevision })
    if (oldestRevision > 0)
      expect(() => collectEvents(store, { prefix, afterRevision: oldestRevision - 1 })).toThrow(CompactedError)
    const keepsAll = (limits: { keepMs?: number; entriesMax?: number } | undefined) =>
      !limits || (Number(limits.keepMs) >= 1_000_000 && Number(limits.entriesMax) >= 1_000)
    if (keepsAll(history) && keepsAll(history.brief)) expect(oldestRevision).toBe(0)
  }
}

/** Compares lists from the newest revision back and returns the oldest revision that is kept. */
async function expectStates(store: Store, model: HistoryModel, prefix: string): Promise<Revision> {
  for (let revision = model.states.length - 1; revision >= 0; revision--) {
    const list = await store.list({ prefix, atRevision: revision }).catch((error) => {
      expect(error).toBeInstanceOf(CompactedError)
      expect(revision).toBeLessThan(model.states.length - 1)
    })
    if (!list) return revision + 1
    const state = [...(model.states[revision] as ReadonlyMap<string, string>)].filter(([key]) => key.startsWith(prefix))
    state.sort(([a], [b]) => (a < b ? -1 : 1))
    expect(list.entries.map((entry) => [entry.key, text(entry)])).toEqual(state)
    const page = await store.list({ prefix, atRevision: revision, limit: 2 })
    expect(page).toMatchObject({ hasMore: state.length > 2, remainingCount: Math.max(0, state.length - 2) })
  }
  return 0
}

async function expectChanges(
  store: Store,
  model: HistoryModel,
  range: { prefix: string; afterRevision: Revision },
): Promise<void> {
  const { events, watch } = collectEvents(store, range)
  await waitUntil(() => watch.revision === store.revision)
  watch.close()
  const isInRange = ({ key, revision }: { key: string; revision: Revision }) =>
    key.startsWith(range.prefix) && revision > range.afterRevision
  expect(events.map(formatEvent)).toEqual(model.changes.filter(isInRange).map(({ formatted }) => formatted))
}
