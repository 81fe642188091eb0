import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { type WarmUpOptions, warmUp } from './warm-up.ts'

describe('warmUp', () => {
  it('creates all slices of claims on an idle server, then releases the memory', async () => {
    const { clock, events, run } = startWarmUp()
    await clock.advance(5_000)
    await run
    expect(events).toEqual(['open', ...Array(32).fill('slice'), 'close', 'release'])
  })

  it('waits until the start of controllers and nodes leaves the event loop idle', async () => {
    const shares = [0.9, 0.8, 0.6, 0.1]
    const { clock, events } = startWarmUp({ utilization: () => shares.shift() ?? 0 })
    await clock.advance(300)
    expect(events).toEqual([])
    await clock.advance(100)
    expect(events).toContain('open')
  })

  it('starts no slice while requests arrive', async () => {
    const { clock, events, receiveRequest, run } = startWarmUp()
    await clock.advance(150)
    const slices = events.length
    for (let requests = 0; requests < 20; requests++) {
      receiveRequest()
      await clock.advance(100)
    }
    expect(events.length).toBe(slices)
    await clock.advance(2_000)
    expect(events.at(-1)).toBe('close')
    await clock.advance(3_000)
    await run
  })

  it('releases no memory while requests arrive', async () => {
    const { clock, events, receiveRequest, run } = startWarmUp()
    await clock.advance(1_000)
    for (let requests = 0; requests < 5; requests++) {
      receiveRequest()
      await clock.advance(2_000)
    }
    expect(events.at(-1)).toBe('close')
    await clock.advance(1_000)
    await run
    expect(events.at(-1)).toBe('release')
  })

  it('ends after a minute of requests', async () => {
    const { clock, events, receiveRequest, run } = startWarmUp()
    await clock.advance(150)
    for (let requests = 0; requests < 600; requests++) {
      receiveRequest()
      await clock.advance(100)
    }
    await run
    expect(events.at(-1)).toBe('close')
  })

  it('ends when the server stops', async () => {
    const stop = new AbortController()
    const { clock, events, run } = startWarmUp({ signal: stop.signal })
    await clock.advance(150)
    stop.abort()
    await run
    expect(events.at(0)).toBe('open')
    expect(events.at(-1)).toBe('close')
  })

  it('logs a failure, such as a temporary directory that cannot be written, and does not reject', async () => {
    const { clock, events, logged, run } = startWarmUp({ runCluster: () => Promise.reject(new Error('EROFS')) })
    await clock.advance(2_000)
    await run
    expect(logged.at(-1)).toEqual({ reason: 'EROFS' })
    expect(events).toEqual([])
  })
})

const PKI = { caCert: '', servingCert: '', servingKey: '', admin: { user: '', cert: '', key: '' } }

function startWarmUp(options: Partial<WarmUpOptions> = {}) {
  const clock = manualClock()
  const events: string[] = []
  const logged: object[] = []
  let lastRequestMs = Number.NEGATIVE_INFINITY
  const ignore = () => {}
  const run = warmUp({
    gates: parseFeatureGates(''),
    pki: PKI,
    clock,
    random: () => 0.5,
    log: { debug: (fields) => void logged.push(fields), info: ignore, warn: ignore, error: ignore },
    signal: new AbortController().signal,
    utilization: () => 0,
    lastRequestMs: () => lastRequestMs,
    releaseMemory: async () => void events.push('release'),
    async runCluster(_, use) {
      events.push('open')
      await use({ createClaims: async () => void events.push('slice'), close: ignore }).finally(() =>
        events.push('close'),
      )
    },
    ...options,
  })
  return {
    clock,
    events,
    logged,
    run,
    receiveRequest() {
      lastRequestMs = clock.monotonicMs()
    },
  }
}
