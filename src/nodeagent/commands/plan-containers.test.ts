import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type ContainerState, planContainers } from './plan-containers.ts'

const NOW = 1_000_000
const TIMES = { startedMs: NOW - 5_000, restartDelayMs: 0 }
const aPod = (restartPolicy = 'Always'): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { restartPolicy, containers: [] } as never,
})
const aState = (name: string, state: Partial<ContainerState> = {}): ContainerState => ({
  container: { name },
  isInPostStart: false,
  isStarted: true,
  isReady: true,
  ...state,
})
const sidecar = (name: string, state: Partial<ContainerState> = {}) =>
  aState(name, { ...state, container: { name, restartPolicy: 'Always' } })
const running = (run = 0) => ({
  latestRun: { run, id: `r${run}`, state: { is: 'running', pid: 7, ...TIMES } as const },
})
const ended = (code: number, { run = 0, ...fields }: { run?: number; [field: string]: unknown } = {}) => ({
  latestRun: {
    run,
    id: `r${run}`,
    state: { is: 'ended', code, isLost: false, isKilled: false, endedMs: NOW - 1_000, ...TIMES, ...fields } as never,
  },
})
const plan = (pod: Pod, init: ContainerState[], main: ContainerState[]) =>
  planContainers(pod, { init, main, ephemeral: [] }, NOW)
const started = (pod: Pod, init: ContainerState[], main: ContainerState[]) =>
  plan(pod, init, main).start?.container.name

describe('planContainers', () => {
  it('starts init containers one after the other, and the main containers when all have succeeded', () => {
    const pod = aPod()
    const main = [aState('main')]
    expect(started(pod, [aState('one'), aState('two')], main)).toBe('one')
    expect(started(pod, [aState('one', running()), aState('two')], main)).toBeUndefined()
    expect(started(pod, [aState('one', ended(0)), aState('two')], main)).toBe('two')
    expect(started(pod, [aState('one', ended(0)), aState('two', ended(0))], main)).toBe('main')
    const { view } = plan(pod, [aState('one', running())], main)
    expect(view.main).toEqual([{ is: 'waiting', reason: 'PodInitializing' }])
    expect(
      plan(
        pod,
        [],
        [aState('main', { latestRun: { ...running().latestRun, state: { is: 'starting', pid: 7, ...TIMES } } })],
      ).view.main,
    ).toEqual([{ is: 'waiting', reason: 'ContainerCreating' }])
  })

  it('restarts a failed init container, unless the restart policy is Never', () => {
    const init = [aState('one', ended(1))]
    expect(plan(aPod('OnFailure'), init, [aState('main')]).start).toMatchObject({ run: 1, restartDelayMs: 10_000 })
    expect(plan(aPod('Never'), init, [aState('main')])).toMatchObject({
      stopSidecars: true,
      view: { init: [{ code: 1 }] },
    })
    expect(started(aPod('Never'), init, [aState('main')])).toBeUndefined()
  })

  it('does not run init containers again after the main containers have started', () => {
    expect(started(aPod(), [aState('one')], [aState('main', running())])).toBeUndefined()
  })

  it('waits for the startup of a sidecar, keeps it running, and restarts it while the main containers run', () => {
    const pod = aPod('Never')
    const main = [aState('main')]
    expect(started(pod, [sidecar('s')], main)).toBe('s')
    expect(started(pod, [sidecar('s', { ...running(), isStarted: false })], main)).toBeUndefined()
    expect(started(pod, [sidecar('s', running())], main)).toBe('main')
    expect(started(pod, [sidecar('s', ended(0))], [aState('main', running())])).toBe('s')
  })

  it('stops sidecars when no main container will run again', () => {
    const init = [sidecar('s', running())]
    expect(plan(aPod('Never'), init, [aState('a', ended(0)), aState('b', ended(1))]).stopSidecars).toBe(true)
    expect(plan(aPod('OnFailure'), init, [aState('a', ended(0)), aState('b', ended(1))]).stopSidecars).toBe(false)
    expect(plan(aPod('Never'), init, [aState('a', ended(0)), aState('b', running())]).stopSidecars).toBe(false)
    expect(started(aPod('Never'), [sidecar('s', ended(0))], [aState('a', ended(0))])).toBeUndefined()
  })

  it.each([
    [0, 1_000, { start: 10_000 }], // the first restart is immediate
    [10_000, 1_000, { waitMs: 9_000, text: '10s' }],
    [10_000, 10_000, { start: 20_000 }],
    [160_000, 1_000, { waitMs: 159_000, text: '2m40s' }],
    [300_000, 300_000, { start: 300_000 }],
  ])('applies a restart delay of %i ms, %i ms after the end: %j', (restartDelayMs, sinceEndMs, expected) => {
    const endedMs = NOW - sinceEndMs
    const state = aState('main', ended(1, { run: 3, restartDelayMs, endedMs, startedMs: endedMs - 1_000 }))
    const { start, wakeInMs, view } = plan(aPod(), [], [state])
    expect(start?.restartDelayMs).toBe('start' in expected ? expected.start : undefined)
    if ('start' in expected) return
    expect(wakeInMs).toBe(expected.waitMs)
    expect(view.main[0]).toMatchObject({
      reason: 'CrashLoopBackOff',
      message: `back-off ${expected.text} restarting failed container=main pod=p_n(u)`,
      restarts: 3,
      last: { code: 1, reason: 'Error', endedMs },
    })
  })

  it('resets the restart delay after a run of more than ten minutes', () => {
    const state = aState('main', ended(1, { restartDelayMs: 300_000, startedMs: NOW - 700_000 }))
    expect(plan(aPod(), [], [state]).start).toMatchObject({ restartDelayMs: 10_000 })
  })

  it('waits no longer than the delay after the clock was set back', () => {
    const state = aState(
      'main',
      ended(1, { restartDelayMs: 10_000, endedMs: NOW + 3_600_000, startedMs: NOW + 3_599_000 }),
    )
    expect(plan(aPod(), [], [state]).wakeInMs).toBe(10_000)
  })

  it('restarts a container that a probe ended, even if it exited with 0, unless the policy is Never', () => {
    const main = [aState('main', ended(0, { isKilled: true }))]
    expect(started(aPod('OnFailure'), [], main)).toBe('main')
    expect(started(aPod('Never'), [], main)).toBeUndefined()
    expect(plan(aPod('OnFailure'), [], main).stopSidecars).toBe(false)
  })

  it('starts an ephemeral container while main containers run, and never restarts it', () => {
    const planWith = (main: ContainerState, ephemeral: ContainerState) =>
      planContainers(aPod(), { init: [], main: [main], ephemeral: [ephemeral] }, NOW)
    const main = aState('main', running())
    expect(planWith(aState('main'), aState('debug')).start?.container.name).toBe('main')
    expect(planWith(main, aState('debug')).start?.container.name).toBe('debug')
    const { start, view } = planWith(main, aState('debug', ended(1)))
    expect([start, view.ephemeral]).toMatchObject([undefined, [{ is: 'ended', code: 1 }]])
  })

  it('delays the next main container until the postStart hook has run', () => {
    const states = [aState('a', { ...running(), isInPostStart: true }), aState('b')]
    expect(started(aPod(), [], states)).toBeUndefined()
    expect(plan(aPod(), [], states).view.main).toEqual([
      { is: 'waiting', reason: 'ContainerCreating' },
      { is: 'waiting', reason: 'ContainerCreating' },
    ])
  })

  it('reports a container that cannot be started, and starts the others', () => {
    const error = { reason: 'CreateContainerConfigError', message: 'no key' }
    const states = [aState('a', { error }), aState('b')]
    expect(started(aPod(), [], states)).toBe('b')
    expect(plan(aPod(), [], states).view.main[0]).toEqual({ is: 'waiting', ...error, restarts: 0 })
  })

  it.each([
    [{ code: 0 }, 'Completed'],
    [{ code: 2 }, 'Error'],
    [{ code: 127, startError: 'not found' }, 'StartError'],
    [{ code: 137, isLost: true }, 'ContainerStatusUnknown'],
  ])('reports the end %j as %s', ({ code, ...fields }, reason) => {
    const { view } = plan(aPod('Never'), [], [aState('main', ended(code, fields))])
    expect(view.main[0]).toMatchObject({ is: 'ended', code, reason })
  })
})
