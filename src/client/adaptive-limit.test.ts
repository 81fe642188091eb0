import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { manualClock } from '../base/manual-clock.ts'
import { createAdaptiveLimit } from './adaptive-limit.ts'
import type { Client } from './client.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
const ref = (index: number) => ({ namespace: 'default', name: `item-${index}` })

/** Creates a client whose requests stay in flight until `finish` is called. */
function createFixture() {
  const clock = manualClock()
  const lines: string[] = []
  const write = (_fields: object, message: string) => void lines.push(message)
  const limit = createAdaptiveLimit({ clock, log: { debug: write, info: write, warn: write, error: write } })
  const inFlight: { readonly name: string; finish(): void }[] = []
  const get = (_kind: unknown, { name }: { name: string }) =>
    new Promise<object>((resolve) => inFlight.push({ name, finish: () => resolve({}) }))
  const create = (_kind: unknown, { metadata }: { metadata: { name: string } }) => get(_kind, metadata)
  const client = limit.limitClient({ get, create } as unknown as Client)
  const respond = (code: number, { verb = 'GET', seconds = 0.01 } = {}) =>
    limit.observeRequest({ verb, resource: 'configmaps', code, seconds })
  return {
    clock,
    limit,
    lines,
    inFlight,
    respond,
    /** Reduces the limit to the minimum. */
    async reduceToMinimum() {
      for (let i = 0; i < 6; i++) {
        respond(429)
        await clock.advance(1_000)
      }
    },
    send: (count: number, signal?: AbortSignal) =>
      Array.from({ length: count }, (_, index) => client.get(configMapKind, ref(index), signal ? { signal } : {})),
    sendBackground: (count: number) =>
      Array.from({ length: count }, (_, index) =>
        client.create(configMapKind, { metadata: { name: `event-${index}` } }, { isBackground: true }),
      ),
  }
}

describe('the adaptive limit', () => {
  it('SYS-29 halves the limit after 429, once for a burst, down to a minimum', async () => {
    const { limit, respond, clock, reduceToMinimum, lines } = createFixture()
    expect(limit.inFlightMax).toBe(100)
    for (let i = 0; i < 20; i++) respond(429)
    expect(limit.inFlightMax).toBe(50)
    await clock.advance(1_000)
    await reduceToMinimum()
    expect(limit.inFlightMax).toBe(4)
    expect(lines).toEqual(['the API server is overloaded; sending fewer requests at a time'])
  })

  it('halves the limit after a slow response to a request other than a list or a watch', async () => {
    const { limit, respond } = createFixture()
    respond(200, { verb: 'WATCH', seconds: 300 })
    respond(200, { verb: 'LIST', seconds: 20 })
    expect(limit.inFlightMax).toBe(100)
    respond(200, { seconds: 6 })
    expect(limit.inFlightMax).toBe(50)
  })

  it('SYS-29 raises the limit after accepted requests, but not after server errors, aborted requests or missing responses', async () => {
    const { limit, respond, reduceToMinimum, lines } = createFixture()
    await reduceToMinimum()
    for (const code of [0, 499, 500, 503, 504]) for (let i = 0; i < 1_000; i++) respond(code)
    expect(limit.inFlightMax).toBe(4)
    for (let i = 0; i < 1_000; i++) respond(201)
    expect(limit.inFlightMax).toBe(100)
    expect(lines.at(-1)).toBe('the API server is no longer overloaded')
  })

  it('sends waiting requests in order when others finish', async () => {
    const { send, inFlight, reduceToMinimum } = createFixture()
    await reduceToMinimum()
    const requests = send(6)
    await settle()
    expect(inFlight.map(({ name }) => name)).toEqual(['item-0', 'item-1', 'item-2', 'item-3'])
    inFlight[1]!.finish()
    await settle()
    expect(inFlight.at(-1)?.name).toBe('item-4')
    for (let i = 0; i < 6; i++) {
      inFlight[i]!.finish()
      await settle()
    }
    await Promise.all(requests)
  })

  it('sends one background write at a time while many other requests are in flight, and more afterwards', async () => {
    const { send, sendBackground, inFlight } = createFixture()
    const requests = [...send(20), ...sendBackground(5)]
    await settle()
    expect(inFlight).toHaveLength(21)
    inFlight[20]!.finish()
    await settle()
    expect(inFlight.map(({ name }) => name).slice(20)).toEqual(['event-0', 'event-1'])
    for (const { finish } of inFlight.slice(0, 12)) finish()
    await settle()
    expect(inFlight.map(({ name }) => name).slice(22)).toEqual(['event-2', 'event-3', 'event-4'])
    for (const { finish } of inFlight) finish()
    await Promise.all(requests)
  })

  it('sends a background write even if other requests are always waiting', async () => {
    const { send, sendBackground, inFlight, reduceToMinimum } = createFixture()
    await reduceToMinimum()
    const requests = [...send(8), ...sendBackground(2)]
    await settle()
    inFlight[0]!.finish()
    await settle()
    expect(inFlight.at(-1)?.name).toBe('event-0')
    inFlight[1]!.finish()
    await settle()
    expect(inFlight.at(-1)?.name).toBe('item-4')
    for (let index = 0; index < requests.length; index++) {
      inFlight[index]!.finish()
      await settle()
    }
    await Promise.all(requests)
  })

  it('rejects a waiting request when its signal is aborted, and never sends it', async () => {
    const { send, inFlight, reduceToMinimum } = createFixture()
    await reduceToMinimum()
    const firstRequests = send(4)
    const abort = new AbortController()
    const [waitingRequest] = send(1, abort.signal)
    await settle()
    const rejection = expect(waitingRequest).rejects.toThrow()
    abort.abort()
    await rejection
    for (const { finish } of inFlight) finish()
    await Promise.all(firstRequests)
    expect(inFlight).toHaveLength(4)
  })
})
