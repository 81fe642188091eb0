import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { type ManualClock, manualClock } from '../../base/manual-clock.ts'
import { AppendRejectedError, type Medium, memoryMedium, openMemoryStore, type Store } from '../../store/index.ts'
import { EVENTS_PREFIX } from '../keys.ts'
import { limitEvents } from './limit-events.ts'

const LIMITS = { namespace: { events: 100, bytes: 100_000 }, total: { events: 250, bytes: 1_000_000 } }

let clock: ManualClock
let medium: Medium
let store: Store
let registry: Registry
let stop: AbortController

beforeEach(async () => {
  clock = manualClock()
  medium = memoryMedium()
  store = await openMemoryStore({ clock, medium })
  registry = new Registry()
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await store.close()
})

const start = () => limitEvents({ store, clock, log: silentLog, registry, signal: stop.signal, limits: LIMITS })
const keyOf = (namespace: string, index: number) => `${EVENTS_PREFIX}${namespace}/e${String(index).padStart(4, '0')}`
const putEvents = (namespace: string, from: number, to: number) =>
  store.transact(() =>
    Array.from({ length: to - from }, (_, index) => ({
      put: keyOf(namespace, from + index),
      value: Buffer.from('{}'),
    })),
  )
const listKeys = async (namespace: string) =>
  (await store.list({ prefix: `${EVENTS_PREFIX}${namespace}/` })).entries.map(({ key }) => key)
const removedTotal = async () =>
  /stowage_events_removed_total\{limit="namespace"\} (\d+)/.exec(await registry.metrics())?.[1]

async function waitForCount(namespace: string, count: number): Promise<void> {
  while ((await listKeys(namespace)).length !== count) await clock.nextTurn() // until the test times out
}

describe('limitEvents', () => {
  it("SYS-19 deletes a namespace's oldest events beyond the limit, but no events of other namespaces", async () => {
    await start()
    await putEvents('quiet', 0, 50)
    await putEvents('busy', 0, 150)
    await waitForCount('busy', 99)
    expect((await listKeys('busy'))[0]).toBe(keyOf('busy', 51))
    expect(await listKeys('quiet')).toHaveLength(50)
    expect(await removedTotal()).toBe('51')
    expect(await registry.metrics()).toContain('stowage_events 149')
  })

  it('SYS-19 keeps an event that changes before its deletion, and does not count it as removed', async () => {
    await putEvents('busy', 0, 150)
    const changedKey = keyOf('busy', 3)
    let isChanged = false
    const transact: Store['transact'] = async (decide) => {
      if (!isChanged) {
        isChanged = true
        await store.transact(() => [{ put: changedKey, value: Buffer.from('{"count":2}') }])
      }
      return store.transact(decide)
    }
    const racingStore = new Proxy(store, {
      get: (target, name) => {
        if (name === 'transact') return transact
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    await limitEvents({ store: racingStore, clock, log: silentLog, registry, signal: stop.signal, limits: LIMITS })
    await waitForCount('busy', 100)
    expect(await listKeys('busy')).toContain(changedKey)
    expect(await removedTotal()).toBe('50')
  })

  it('SYS-19 deletes excess events that an earlier process has left', async () => {
    await putEvents('busy', 0, 150)
    await start()
    await waitForCount('busy', 99)
  })

  it('retries a deletion that the store rejected', async () => {
    const { write } = medium
    await start()
    await putEvents('busy', 0, 90)
    let rejections = 0
    medium.write = async (batch) => {
      if (batch.append.some(({ isDeleted }) => isDeleted) && rejections++ === 0)
        throw new AppendRejectedError('disk full')
      return write.call(medium, batch)
    }
    await putEvents('busy', 90, 150)
    while (rejections === 0) await clock.nextTurn()
    while ((await listKeys('busy')).length !== 99) await clock.advance(1_000)
    expect(rejections).toBeGreaterThan(0)
  })
})
