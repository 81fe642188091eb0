import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { type WarmUpOptions, warmUp } from './warm-up.ts'

describe('warmUp', () => {
  it('creates all slices of claims on an idle server, then releases the memory', async () => {
    const { advance, events, run } = startWarmUp()
    await advance(5_000)
    await run
    expect(events).toEqual(['open', ...Array(32).fill('slice'), 'close', 'release'])
  })

  it('waits until the nodes are ready', async () => {
    let onStarted = () => {}
    const started = new Promise<void>((resolve) => {
      onStarted = resolve
    })
    const { advance, events, run } = startWarmUp({ started })
    await advance(10_000)
    expect(events).toEqual([])
    onStarted()
    await advance(5_000)
    await run
    expect(events).toContain('open')
  })

  it('waits until the start of the controllers leaves the event loop idle', async () => {
    const shares = [0.9, 0.8, 0.6, 0.1]
    const { advance, events } = startWarmUp({ utilization: () => shares.shift() ?? 0 })
    await advance(300)
    expect(events).toEqual([])
    await advance(100)
    expect(events).toContain('open')
  })

  it('starts no slice while requests arrive', async () => {
    const { advance, events, receiveRequest, run } = startWarmUp()
    await advance(150)
    const slices = events.length
    for (let requests = 0; requests < 20; requests++) {
      receiveRequest()
      await advance(100)
    }
    expect(events.length).toBe(slices)
    await advance(2_000)
    expect(events.at(-1)).toBe('close')
    await advance(3_000)
    await run
  })

  it('releases no memory while requests arrive', async () => {
    const { advance, events, receiveRequest, run } = startWarmUp()
    await advance(1_000)
    for (let requests = 0; requests < 5; requests++) {
      receiveRequest()
      await advance(2_000)
    }
    expect(events.at(-1)).toBe('close')
    await advance(1_000)
    await run
    expect(events.at(-1)).toBe('release')
  })

  it('ends after a minute of requests', async () => {
    const { advance, events, receiveRequest, run } = startWarmUp()
    await advance(150)
    for (let requests = 0; requests < 600; requests++) {
      receiveRequest()
      await advance(100)
    }
    await run
    expect(events.at(-1)).toBe('close')
  })

  it('ends when the server stops', async () => {
    const stop = new AbortController()
    const { advance, events, run } = startWarmUp({ signal: stop.signal })
    await advance(150)
    stop.abort()
    await run
    expect(events.at(0)).toBe('open')
    expect(events.at(-1)).toBe('close')
  })

  it('ends when the server stops before its nodes are ready', async () => {
    const stop = new AbortController()
    const { events, run } = startWarmUp({ signal: stop.signal, started: new Promise(() => {}) })
    stop.abort()
    await run
    expect(events).toEqual([])
  })

  it('logs a failure, such as a temporary directory that cannot be written, and does not reject', async () => {
    const { advance, events, logged, run } = startWarmUp({ runCluster: () => Promise.reject(new Error('EROFS')) })
    await advance(2_000)
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
    started: Promise.resolve(),
    utilization: () => 0,
    lastRequestMs: () => lastRequestMs,
    releaseMemory: async () => void events.push('release'),
    async runCluster(_, use) {
      events.push('open')
      await use({ createClaims: async () => void events.push('slice') }).finally(() => events.push('close'))
    },
    ...options,
  })
  return {
    /** First lets the warm-up start its timer, after a promise that it waits for. */
    async advance(ms: number) {
      await new Promise((resolve) => setImmediate(resolve))
      await clock.advance(ms)
    },
    events,
    logged,
    run,
    receiveRequest() {
      lastRequestMs = clock.monotonicMs()
    },
  }
}
