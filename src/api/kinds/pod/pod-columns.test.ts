import { describe, expect, it } from 'vitest'
import { cellsOf } from '../kind.fixture.ts'
import { podKind } from './pod.ts'
import type { Pod } from './pod-schema.ts'

const container = (state: object, more: object = {}) => ({
  name: 'c',
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  ...more,
})
const running = (more: object = {}) => container({ running: {} }, { ready: true, ...more })
const waiting = (reason: string) => container({ waiting: { reason } })
const ended = (exitCode: number, more: object = {}) => container({ terminated: { exitCode, ...more } })

const aPod = (
  status: object,
  { init = [], ...more }: { init?: object[]; metadata?: object; spec?: object } = {},
): Pod =>
  ({
    metadata: { name: 'db-0', ...more.metadata },
    spec: { containers: [{ name: 'c' }], initContainers: init, ...more.spec },
    status,
  }) as unknown as Pod

const isReady = [{ type: 'Ready', status: 'True' }]

describe('pods in a list', () => {
  it.each<[string, Pod]>([
    ['Pending', aPod({ phase: 'Pending' })],
    ['Evicted', aPod({ phase: 'Failed', reason: 'Evicted' })],
    [
      'SchedulingGated',
      aPod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
    ],
    ['Running', aPod({ phase: 'Running', containerStatuses: [running()] })],
    ['ContainerCreating', aPod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] })],
    ['CrashLoopBackOff', aPod({ phase: 'Running', containerStatuses: [running(), waiting('CrashLoopBackOff')] })],
    ['OOMKilled', aPod({ phase: 'Failed', containerStatuses: [ended(137, { reason: 'OOMKilled' })] })],
    ['Signal:9', aPod({ phase: 'Failed', containerStatuses: [ended(137, { signal: 9 })] })],
    ['ExitCode:2', aPod({ phase: 'Failed', containerStatuses: [ended(2)] })],
    [
      'Running',
      aPod({
        phase: 'Running',
        conditions: isReady,
        containerStatuses: [ended(0, { reason: 'Completed' }), running()],
      }),
    ],
    ['NotReady', aPod({ phase: 'Running', containerStatuses: [ended(0, { reason: 'Completed' }), running()] })],
    [
      'Error',
      aPod({ phase: 'Running', containerStatuses: [ended(0, { reason: 'Completed' }), ended(1, { reason: 'Error' })] }),
    ],
    ['Init:0/2', aPod({ phase: 'Pending', initContainerStatuses: [container({ running: {} })] }, { init: [{}, {}] })],
    [
      'Init:1/2',
      aPod({ phase: 'Pending', initContainerStatuses: [ended(0), waiting('PodInitializing')] }, { init: [{}, {}] }),
    ],
    [
      'Init:ImagePullBackOff',
      aPod({ phase: 'Pending', initContainerStatuses: [waiting('ImagePullBackOff')] }, { init: [{}] }),
    ],
    ['Init:Error', aPod({ phase: 'Pending', initContainerStatuses: [ended(1, { reason: 'Error' })] }, { init: [{}] })],
    ['Init:ExitCode:3', aPod({ phase: 'Pending', initContainerStatuses: [ended(3)] }, { init: [{}] })],
    [
      'Terminating',
      aPod(
        { phase: 'Running', containerStatuses: [running()] },
        { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } },
      ),
    ],
    ['Succeeded', aPod({ phase: 'Succeeded' }, { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } })],
    [
      'Unknown',
      aPod({ phase: 'Running', reason: 'NodeLost' }, { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } }),
    ],
  ])('shows %s', (status, pod) => {
    expect(cellsOf(podKind, pod).Status).toBe(status)
  })

  it('counts ready containers, including sidecars', () => {
    const sidecar = { name: 'side', restartPolicy: 'Always' }
    const status = {
      phase: 'Running',
      initContainerStatuses: [running({ name: 'side', started: true })],
      containerStatuses: [waiting('CrashLoopBackOff')],
    }
    expect(cellsOf(podKind, aPod(status, { init: [sidecar] })).Ready).toBe('1/2')
  })

  it('counts restarts and shows the time of the last one', () => {
    const lastState = { terminated: { exitCode: 1, finishedAt: '2026-01-02T03:00:05Z' } }
    const restarted = {
      phase: 'Running',
      containerStatuses: [running({ restartCount: 3, lastState }), running({ restartCount: 1 })],
    }
    expect(cellsOf(podKind, aPod(restarted)).Restarts).toBe('4 (4m ago)')
    expect(cellsOf(podKind, aPod({ phase: 'Running', containerStatuses: [running()] })).Restarts).toBe('0')
  })

  it('shows node and readiness gates in the wide columns', () => {
    expect(cellsOf(podKind, aPod({ phase: 'Pending' }))).toMatchObject({
      IP: '<none>',
      Node: '<none>',
      'Nominated Node': '<none>',
      'Readiness Gates': '<none>',
    })
    const spec = { nodeName: 'node-1', readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] }
    const conditions = [
      { type: 'a', status: 'True' },
      { type: 'b', status: 'False' },
    ]
    expect(
      cellsOf(podKind, aPod({ phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions }, { spec })),
    ).toMatchObject({
      IP: '10.0.0.1',
      Node: 'node-1',
      'Readiness Gates': '1/2',
    })
  })
})
