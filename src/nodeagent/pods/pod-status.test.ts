import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type ContainerView, everyContainer, phaseOf, statusOf, statusPatch } from './pod-status.ts'

const NOW = Date.UTC(2026, 0, 1)
const aPod = (restartPolicy: string, more: object = {}): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: { restartPolicy, containers: [{ name: 'a' }, { name: 'b' }], ...more } as never,
})
const ended = (code: number): ContainerView => ({ is: 'ended', code, reason: code ? 'Error' : 'Completed' })
const running: ContainerView = { is: 'running' }
const creating: ContainerView = { is: 'waiting', reason: 'ContainerCreating' }
const crashed: ContainerView = { is: 'waiting', reason: 'CrashLoopBackOff', restarts: 2 }

describe('phase', () => {
  const table: [string, ContainerView[], string][] = [
    ['Always', [creating, creating], 'Pending'],
    ['Always', [running, creating], 'Running'],
    ['Always', [ended(0), ended(0)], 'Running'],
    ['Always', [crashed, crashed], 'Running'],
    ['OnFailure', [ended(0), ended(0)], 'Succeeded'],
    ['OnFailure', [ended(0), ended(1)], 'Running'],
    ['Never', [ended(0), ended(0)], 'Succeeded'],
    ['Never', [ended(0), ended(1)], 'Failed'],
    ['Never', [ended(1), running], 'Running'],
  ]
  for (const [policy, main, phase] of table) {
    const shown = main.map((view) => (view.is === 'ended' ? `ended ${view.code}` : view.is)).join(', ')
    it(`SYS-7 ${policy}: ${shown} is ${phase}`, () => {
      expect(phaseOf(aPod(policy), { init: [], main })).toBe(phase)
    })
  }

  it('SYS-7 a failed init container fails the pod', () => {
    const view = { init: [ended(1)], main: [creating, creating] }
    expect(phaseOf(aPod('Never'), view)).toBe('Failed')
    expect(phaseOf(aPod('Always'), view)).toBe('Pending')
  })
})

describe('status', () => {
  it('SYS-7 creates no patch for an unchanged state', () => {
    const pod = aPod('Always')
    const first = statusOf(pod, everyContainer(pod, running), NOW)
    const later = statusOf({ ...pod, status: first }, everyContainer(pod, running), NOW + 60_000)
    expect(statusPatch(first, later)).toBeUndefined()
    expect(later.startTime).toBe('2026-01-01T00:00:00Z')
    expect(later.containerStatuses?.[0]?.state?.running?.startedAt).toBe('2026-01-01T00:00:00Z')
  })

  it('SYS-7 removes the reason of a condition that becomes true, and sets its transition time', () => {
    const pod = aPod('Always')
    const before = statusOf(pod, everyContainer(pod, creating), NOW)
    expect(before.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [a b]',
    })
    const next = statusOf({ ...pod, status: before }, everyContainer(pod, running), NOW + 5_000)
    const patch = statusPatch(before, next) as { conditions: object[] }
    expect(patch.conditions).toContainEqual({
      type: 'Ready',
      status: 'True',
      reason: null,
      message: null,
      lastTransitionTime: '2026-01-01T00:00:05Z',
    })
    expect(patch.conditions).not.toContainEqual(expect.objectContaining({ type: 'PodScheduled' }))
  })

  it('SYS-7 keeps the last termination while a container waits to restart', () => {
    const pod = aPod('Always')
    const failed = statusOf(pod, everyContainer(pod, ended(3)), NOW)
    const waiting = statusOf({ ...pod, status: failed }, everyContainer(pod, crashed), NOW + 1_000)
    expect(waiting.containerStatuses?.[0]).toMatchObject({
      restartCount: 2,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 3, reason: 'Error' } },
    })
  })

  it('SYS-7 reports an unobserved termination with a stable time', () => {
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
    const begun = statusOf(pod, everyContainer(pod, running), NOW)
    const waiting = statusOf({ ...pod, status: begun }, everyContainer(pod, { ...crashed, last } as never), NOW + 1_000)
    expect(waiting.containerStatuses?.[0]).toMatchObject({ lastState })
    const again = statusOf({ ...pod, status: waiting }, everyContainer(pod, { is: 'running', last }), NOW + 9_000)
    expect(again.containerStatuses?.[0]).toMatchObject({ lastState })
  })

  it('SYS-7 a stopped pod has terminated, regardless of its restart policy', () => {
    const pod = aPod('Always')
    const status = statusOf(pod, everyContainer(pod, ended(0)), NOW, { isOver: true })
    expect(status.phase).toBe('Succeeded')
    expect(status.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'PodCompleted' })
  })
})
