import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventLedger, type EventLimits } from './event-ledger.ts'

const LIMITS: EventLimits = { namespace: { events: 10, bytes: 1_000 }, total: { events: 15, bytes: 1_800 } }

const anEvent = (index: number, { namespace = 'a', bytes = 10 } = {}) => ({
  key: `core/events/${namespace}/${index}`,
  namespace,
  revision: index,
  bytes,
})

describe('EventLedger', () => {
  it('SYS-19 returns no events while all events are within the limits', () => {
    const ledger = new EventLedger(LIMITS)
    for (let index = 0; index < 10; index++) ledger.put(anEvent(index))
    expect(ledger.takeExcess()).toEqual([])
    expect([ledger.events, ledger.bytes]).toEqual([10, 100])
  })

  it('SYS-19 returns the oldest events of a namespace with too many events', () => {
    const ledger = new EventLedger(LIMITS)
    for (let index = 0; index < 12; index++) ledger.put(anEvent(index))
    expect(ledger.takeExcess().map(({ revision, limit }) => [revision, limit])).toEqual([
      [0, 'namespace'],
      [1, 'namespace'],
      [2, 'namespace'], // one percent of the limit is freed too
    ])
    expect(ledger.takeExcess()).toEqual([])
  })

  it('returns the oldest events of a namespace with too many bytes', () => {
    const ledger = new EventLedger(LIMITS)
    for (let index = 0; index < 3; index++) ledger.put(anEvent(index, { bytes: 400 }))
    expect(ledger.takeExcess().map(({ revision }) => revision)).toEqual([0])
  })

  it('returns the oldest events of all namespaces if there are too many in total', () => {
    const ledger = new EventLedger(LIMITS)
    for (let index = 0; index < 16; index++) ledger.put(anEvent(index, { namespace: index % 2 ? 'a' : 'b' }))
    expect(ledger.takeExcess().map(({ key, limit }) => [key, limit])).toEqual([
      ['core/events/b/0', 'total'],
      ['core/events/a/1', 'total'],
    ])
  })

  it('counts a changed event as the newest', () => {
    const ledger = new EventLedger(LIMITS)
    for (let index = 0; index < 10; index++) ledger.put(anEvent(index))
    ledger.put({ ...anEvent(0), revision: 10 })
    ledger.put(anEvent(11))
    expect(ledger.takeExcess().map(({ revision }) => revision)).toEqual([1, 2])
  })

  it('keeps every limit after any sequence of changes, and returns only the oldest events', () => {
    const change = fc.record({
      name: fc.nat(30),
      namespace: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.nat(300),
      isRemoval: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
        const ledger = new EventLedger(LIMITS)
        const model = new Map<string, { namespace: string; bytes: number; revision: number }>()
        for (const [revision, { name, namespace, bytes, isRemoval }] of changes.entries()) {
          const key = `core/events/${namespace}/${name}`
          model.delete(key)
          if (isRemoval) ledger.remove(key)
          else {
            ledger.put({ key, namespace, bytes, revision })
            model.set(key, { namespace, bytes, revision })
          }
          for (const { key: removedKey, namespace: removedNamespace, limit } of ledger.takeExcess()) {
            const candidates = [...model].filter(
              ([, event]) => limit === 'total' || event.namespace === removedNamespace,
            )
            expect(candidates[0]?.[0]).toBe(removedKey)
            model.delete(removedKey)
          }
          const remainingEvents = [...model.values()]
          const sum = (events: typeof remainingEvents) =>
            events.reduce((sumOfBytes, event) => sumOfBytes + event.bytes, 0)
          expect([ledger.events, ledger.bytes]).toEqual([model.size, sum(remainingEvents)])
          expect(model.size).toBeLessThanOrEqual(LIMITS.total.events)
          expect(sum(remainingEvents)).toBeLessThanOrEqual(LIMITS.total.bytes)
          for (const checkedNamespace of ['a', 'b', 'c']) {
            const namespaceEvents = remainingEvents.filter((event) => event.namespace === checkedNamespace)
            expect(namespaceEvents.length).toBeLessThanOrEqual(LIMITS.namespace.events)
            expect(sum(namespaceEvents)).toBeLessThanOrEqual(LIMITS.namespace.bytes)
          }
        }
      }),
    )
  })
})
