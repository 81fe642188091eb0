import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type ContainerView, phaseOf, statusOf, statusPatch, viewOfAll } from './pod-status.ts'

const NOW = Date.UTC(2026, 0, 1)
const aPod = (restartPolicy: string, spec: object = {}): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: { restartPolicy, containers: [{ name: 'a' }, { name: 'b' }], ...spec } as never,
})
const anEndedContainer = (code: number): ContainerView => ({ is: 'ended', code, reason: code ? 'Error' : 'Completed' })
const RUNNING: ContainerView = { is: 'running' }
const CREATING: ContainerView = { is: 'waiting', reason: 'ContainerCreating' }
const CRASHED: ContainerView = { is: 'waiting', reason: 'CrashLoopBackOff', restarts: 2 }

describe('phaseOf', () => {
  const table: [string, ContainerView[], string][] = [
    ['Always', [CREATING, CREATING], 'Pending'],
    ['Always', [RUNNING, CREATING], 'Running'],
    ['Always', [anEndedContainer(0), anEndedContainer(0)], 'Running'],
    ['Always', [CRASHED, CRASHED], 'Running'],
    ['OnFailure', [anEndedContainer(0), anEndedContainer(0)], 'Succeeded'],
    ['OnFailure', [anEndedContainer(0), anEndedContainer(1)], 'Running'],
    ['Never', [anEndedContainer(0), anEndedContainer(0)], 'Succeeded'],
    ['Never', [anEndedContainer(0), anEndedContainer(1)], 'Failed'],
    ['Never', [anEndedContainer(1), RUNNING], 'Running'],
  ]
  for (const [policy, main, phase] of table) {
    const description = main.map((view) => (view.is === 'ended' ? `ended ${view.code}` : view.is)).join(', ')
    it(`returns ${phase} for ${description} with the restart policy ${policy}`, () => {
      expect(phaseOf(aPod(policy), { init: [], main })).toBe(phase)
    })
  }

  it('returns Failed for a failed init container with the restart policy Never', () => {
    const view = { init: [anEndedContainer(1)], main: [CREATING, CREATING] }
    const initContainers = [{ name: 'i' }]
    expect(phaseOf(aPod('Never', { initContainers }), view)).toBe('Failed')
    expect(phaseOf(aPod('Always', { initContainers }), view)).toBe('Pending')
  })

  it('ignores sidecars, but returns no terminal phase while one runs', () => {
    const pod = aPod('Never', { initContainers: [{ name: 's', restartPolicy: 'Always' }] })
    const main = [anEndedContainer(0), anEndedContainer(0)]
    expect(phaseOf(pod, { init: [RUNNING], main })).toBe('Running')
    expect(phaseOf(pod, { init: [anEndedContainer(137)], main })).toBe('Succeeded')
    expect(phaseOf(pod, { init: [anEndedContainer(137)], main: [RUNNING, anEndedContainer(0)] })).toBe('Running')
  })

  it('applies the restart policy and the rules of a container', () => {
    const restartPolicyRules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }]
    const pod = aPod('Always', { containers: [{ name: 'a', restartPolicy: 'Never', restartPolicyRules }] })
    expect(phaseOf(pod, { init: [], main: [anEndedContainer(0)] })).toBe('Succeeded')
    expect(phaseOf(pod, { init: [], main: [anEndedContainer(1)] })).toBe('Failed')
    expect(phaseOf(pod, { init: [], main: [anEndedContainer(42)] })).toBe('Running')
  })
})

describe("a pod's status", () => {
  it('is ready when its main containers, its sidecars and its readiness gates are', () => {
    const sidecar = { name: 's', restartPolicy: 'Always' }
    const pod = aPod('Always', { initContainers: [sidecar], readinessGates: [{ conditionType: 'x/gate' }] })
    const conditionsOf = (view: { init: ContainerView[]; main: ContainerView[] }, gate?: string) => {
      const conditions = gate ? [{ type: 'x/gate', status: gate }] : []
      const { conditions: written = [] } = statusOf({ ...pod, status: { conditions } }, view, NOW)
      return written.filter(({ status }) => status === 'False').map(({ type, reason }) => `${type} ${reason}`)
    }
    const main = [RUNNING, RUNNING]
    const notReady: ContainerView = { is: 'running', isReady: false, isStarted: true }
    const starting: ContainerView = { is: 'running', isReady: false, isStarted: false }
    expect(conditionsOf({ init: [RUNNING], main }, 'True')).toEqual([])
    expect(conditionsOf({ init: [RUNNING], main })).toEqual(['Ready ReadinessGatesNotReady'])
    expect(conditionsOf({ init: [notReady], main }, 'True')).toEqual([
      'Ready ContainersNotReady',
      'ContainersReady ContainersNotReady',
    ])
    expect(conditionsOf({ init: [starting], main: [CREATING, CREATING] }, 'True')).toContain(
      'Initialized ContainersNotInitialized',
    )
    expect(conditionsOf({ init: [RUNNING], main: [RUNNING, notReady] }, 'True')).toContain('Ready ContainersNotReady')
  })

  it('is not patched if the containers have not changed', () => {
    const pod = aPod('Always')
    const firstStatus = statusOf(pod, viewOfAll(pod, RUNNING), NOW)
    const laterStatus = statusOf({ ...pod, status: firstStatus }, viewOfAll(pod, RUNNING), NOW + 60_000)
    expect(statusPatch(firstStatus, laterStatus)).toBeUndefined()
    expect(laterStatus.startTime).toBe('2026-01-01T00:00:00Z')
    expect(laterStatus.containerStatuses?.[0]?.state?.running?.startedAt).toBe('2026-01-01T00:00:00Z')
  })

  it('drops the reason of a condition that becomes true, and sets a new transition time', () => {
    const pod = aPod('Always')
    const firstStatus = statusOf(pod, viewOfAll(pod, CREATING), NOW)
    expect(firstStatus.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [a b]',
    })
    const next = statusOf({ ...pod, status: firstStatus }, viewOfAll(pod, RUNNING), NOW + 5_000)
    const patch = statusPatch(firstStatus, next) as { conditions: object[] }
    expect(patch.conditions).toContainEqual({
      type: 'Ready',
      status: 'True',
      reason: null,
      message: null,
      lastTransitionTime: '2026-01-01T00:00:05Z',
    })
    expect(patch.conditions).not.toContainEqual(expect.objectContaining({ type: 'PodScheduled' }))
  })

  it('has the generation of the pod in the status and in every condition', () => {
    const pod = { ...aPod('Always'), metadata: { ...aPod('Always').metadata, generation: 3 } }
    const status = statusOf(pod, viewOfAll(pod, RUNNING), NOW)
    expect(status.observedGeneration).toBe(3)
    expect(status.conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3, 3, 3, 3])
    const changedPod = { ...pod, metadata: { ...pod.metadata, generation: 4 }, status }
    const patch = statusPatch(status, statusOf(changedPod, viewOfAll(pod, RUNNING), NOW)) as { conditions: object[] }
    expect(patch).toMatchObject({ observedGeneration: 4 })
    expect(patch.conditions).toHaveLength(5)
  })

  it('does not report a running init container as ready, and reports a completed one as ready', () => {
    const pod = aPod('Always', { initContainers: [{ name: 'prepare' }] })
    const isInitReady = (init: ContainerView) =>
      statusOf(pod, { init: [init], main: [CREATING, CREATING] }, NOW).initContainerStatuses?.[0]?.ready
    expect(isInitReady(RUNNING)).toBe(false)
    expect(isInitReady(CREATING)).toBe(false)
    expect(isInitReady(anEndedContainer(1))).toBe(false)
    expect(isInitReady(anEndedContainer(0))).toBe(true)
  })

  it('contains the last termination while a container waits for its restart', () => {
    const pod = aPod('Always')
    const failedStatus = statusOf(pod, viewOfAll(pod, anEndedContainer(3)), NOW)
    const waitingStatus = statusOf({ ...pod, status: failedStatus }, viewOfAll(pod, CRASHED), NOW + 1_000)
    expect(waitingStatus.containerStatuses?.[0]).toMatchObject({
      restartCount: 2,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 3, reason: 'Error' } },
    })
  })

  it('preserves the finish time of a termination that the agent did not observe', () => {
    const pod = aPod('Always')
    const last = { code: 127, reason: 'Error', startedMs: NOW }
    const lastState = {
      terminated: {
        exitCode: 127,
        reason: 'Error',
        startedAt: '2026-01-01T00:00:00Z',
        finishedAt: '2026-01-01T00:00:01Z',
      },
    }
    const runningStatus = statusOf(pod, viewOfAll(pod, RUNNING), NOW)
    const waitingStatus = statusOf(
      { ...pod, status: runningStatus },
      viewOfAll(pod, { ...CRASHED, last } as never),
      NOW + 1_000,
    )
    expect(waitingStatus.containerStatuses?.[0]).toMatchObject({ lastState })
    const restarted = statusOf({ ...pod, status: waitingStatus }, viewOfAll(pod, { is: 'running', last }), NOW + 9_000)
    expect(restarted.containerStatuses?.[0]).toMatchObject({ lastState })
  })

  it('is Succeeded for a stopped pod with the restart policy Always whose containers ended with 0', () => {
    const pod = aPod('Always')
    const status = statusOf(pod, viewOfAll(pod, anEndedContainer(0)), NOW, { isStopped: true })
    expect(status.phase).toBe('Succeeded')
    expect(status.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'PodCompleted' })
  })
})
