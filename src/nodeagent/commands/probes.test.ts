import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createProbes, type ProbeOptions } from './probes.ts'

/** Runs the probes of one container on a manual clock. `outcomes` are the results by the kind of the probe. */
async function startProbes(
  container: object,
  { startup = true, ...options }: Partial<ProbeOptions> & { startup?: boolean } = {},
) {
  const clock = manualClock()
  const outcomes: Record<string, boolean | Error> = { startup, liveness: true, readiness: true }
  const checks: string[] = []
  const events: string[] = []
  const probes = createProbes({
    clock,
    async runAction(_target, { exec }) {
      const [kind = ''] = exec?.command ?? []
      checks.push(kind)
      const outcome = outcomes[kind]!
      if (outcome instanceof Error) throw outcome
      return { isSuccess: outcome, output: outcome ? '' : `${kind} output` }
    },
    onChange() {},
    recordEvent: (_target, { message }) => void events.push(message),
  })
  const target = { pod: { metadata: { name: 'p', uid: 'u' } }, container: { name: 'c', ...container } } as never
  probes.start('run', target, { startedMs: clock.nowMs(), ...options })
  await clock.nextTurn()
  return { clock, outcomes, checks, events, read: () => probes.read('run'), stop: () => probes.stop('run') }
}
const probe = (kind: string, fields: object = {}) => ({ exec: { command: [kind] }, ...fields })

describe('probes', () => {
  it('report a container without probes as started and ready', async () => {
    expect((await startProbes({})).read()).toEqual({ isStarted: true, isReady: true })
  })

  it('start the other probes when the startup probe has succeeded', async () => {
    const container = {
      startupProbe: probe('startup', { periodSeconds: 2 }),
      livenessProbe: probe('liveness'),
      readinessProbe: probe('readiness'),
    }
    const { clock, outcomes, checks, read } = await startProbes(container, { startup: false })
    await clock.advance(2_000)
    expect([checks, read()]).toEqual([['startup', 'startup'], { isStarted: false, isReady: false }])
    outcomes.startup = true
    await clock.advance(2_000)
    expect(checks.slice(2)).toEqual(['startup', 'liveness', 'readiness'])
    expect(read()).toEqual({ isStarted: true, isReady: true })
    await clock.advance(10_000)
    expect(checks.slice(5)).toEqual(['liveness', 'readiness'])
  })

  it('end a container after the threshold of failures, with an event for each', async () => {
    const livenessProbe = probe('liveness', {
      periodSeconds: 1,
      initialDelaySeconds: 5,
      failureThreshold: 2,
      terminationGracePeriodSeconds: 7,
    })
    const { clock, outcomes, checks, events, read } = await startProbes({ livenessProbe })
    outcomes.liveness = false
    await clock.advance(4_000)
    expect(checks).toEqual([])
    await clock.advance(1_000)
    expect(read().failed).toBeUndefined()
    await clock.advance(1_000)
    expect(read()).toMatchObject({ isReady: false, failed: { kind: 'Liveness', graceSeconds: 7 } })
    expect(events).toEqual(['Liveness probe failed: liveness output', 'Liveness probe failed: liveness output'])
    await clock.advance(5_000)
    expect(checks).toHaveLength(2) // no further checks of a container that is being ended
  })

  it('count only consecutive results, and ignore checks that could not be run', async () => {
    const { clock, outcomes, events, read } = await startProbes({
      livenessProbe: probe('liveness', { periodSeconds: 1 }),
    })
    for (const outcome of [false, false, true, false, new Error('gone'), false]) {
      outcomes.liveness = outcome
      await clock.advance(1_000)
    }
    expect(read().failed).toBeUndefined()
    expect(events).toContain('Liveness probe errored and resulted in unknown state: gone')
    outcomes.liveness = false
    await clock.advance(1_000)
    expect(read().failed?.kind).toBe('Liveness')
  })

  it('change readiness after the threshold of either result', async () => {
    const readinessProbe = probe('readiness', { periodSeconds: 1, successThreshold: 2, failureThreshold: 2 })
    const { clock, outcomes, read } = await startProbes({ readinessProbe })
    expect(read().isReady).toBe(false)
    await clock.advance(1_000)
    expect(read().isReady).toBe(true)
    outcomes.readiness = false
    await clock.advance(1_000)
    expect(read().isReady).toBe(true)
    await clock.advance(1_000)
    expect(read().isReady).toBe(false)
  })

  it('continue with the results of an earlier agent', async () => {
    const container = { startupProbe: probe('startup'), readinessProbe: probe('readiness') }
    const { checks, read } = await startProbes(container, { initial: { isStarted: true, isReady: true } })
    expect(read()).toEqual({ isStarted: true, isReady: true })
    expect(checks).toEqual(['readiness'])
  })

  it('end with their run', async () => {
    const { clock, checks, read, stop } = await startProbes({ livenessProbe: probe('liveness') })
    stop()
    await clock.advance(60_000)
    expect(checks).toHaveLength(1)
    expect(read()).toEqual({ isStarted: false, isReady: false })
  })
})
