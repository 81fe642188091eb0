import { describe, expect, it } from 'vitest'
import { cellsOf } from '../kind.fixture.ts'
import { podKind } from './pod.ts'
import type { Pod } from './pod-schema.ts'

const containerStatus = (state: object, fields: object = {}) => ({
  name: 'c',
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  ...fields,
})
const runningStatus = (fields: object = {}) => containerStatus({ running: {} }, { ready: true, ...fields })
const waitingStatus = (reason: string) => containerStatus({ waiting: { reason } })
const terminatedStatus = (exitCode: number, fields: object = {}) =>
  containerStatus({ terminated: { exitCode, ...fields } })

const aPod = (
  status: object,
  { init: initContainers = [], ...options }: { init?: object[]; metadata?: object; spec?: object } = {},
): Pod =>
  ({
    metadata: { name: 'db-0', ...options.metadata },
    spec: { containers: [{ name: 'c' }], initContainers, ...options.spec },
    status,
  }) as unknown as Pod

const READY_CONDITIONS = [{ type: 'Ready', status: 'True' }]

describe('the table of pods', () => {
  it.each<[string, Pod]>([
    ['Pending', aPod({ phase: 'Pending' })],
    ['Evicted', aPod({ phase: 'Failed', reason: 'Evicted' })],
    [
      'SchedulingGated',
      aPod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
    ],
    ['Running', aPod({ phase: 'Running', containerStatuses: [runningStatus()] })],
    ['ContainerCreating', aPod({ phase: 'Pending', containerStatuses: [waitingStatus('ContainerCreating')] })],
    [
      'CrashLoopBackOff',
      aPod({ phase: 'Running', containerStatuses: [runningStatus(), waitingStatus('CrashLoopBackOff')] }),
    ],
    ['OOMKilled', aPod({ phase: 'Failed', containerStatuses: [terminatedStatus(137, { reason: 'OOMKilled' })] })],
    ['Signal:9', aPod({ phase: 'Failed', containerStatuses: [terminatedStatus(137, { signal: 9 })] })],
    ['ExitCode:2', aPod({ phase: 'Failed', containerStatuses: [terminatedStatus(2)] })],
    [
      'Running',
      aPod({
        phase: 'Running',
        conditions: READY_CONDITIONS,
        containerStatuses: [terminatedStatus(0, { reason: 'Completed' }), runningStatus()],
      }),
    ],
    [
      'NotReady',
      aPod({ phase: 'Running', containerStatuses: [terminatedStatus(0, { reason: 'Completed' }), runningStatus()] }),
    ],
    [
      'Error',
      aPod({
        phase: 'Running',
        containerStatuses: [terminatedStatus(0, { reason: 'Completed' }), terminatedStatus(1, { reason: 'Error' })],
      }),
    ],
    [
      'Init:0/2',
      aPod({ phase: 'Pending', initContainerStatuses: [containerStatus({ running: {} })] }, { init: [{}, {}] }),
    ],
    [
      'Init:1/2',
      aPod(
        { phase: 'Pending', initContainerStatuses: [terminatedStatus(0), waitingStatus('PodInitializing')] },
        { init: [{}, {}] },
      ),
    ],
    [
      'Init:ImagePullBackOff',
      aPod({ phase: 'Pending', initContainerStatuses: [waitingStatus('ImagePullBackOff')] }, { init: [{}] }),
    ],
    [
      'Init:Error',
      aPod({ phase: 'Pending', initContainerStatuses: [terminatedStatus(1, { reason: 'Error' })] }, { init: [{}] }),
    ],
    ['Init:ExitCode:3', aPod({ phase: 'Pending', initContainerStatuses: [terminatedStatus(3)] }, { init: [{}] })],
    [
      'Terminating',
      aPod(
        { phase: 'Running', containerStatuses: [runningStatus()] },
        { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } },
      ),
    ],
    ['Succeeded', aPod({ phase: 'Succeeded' }, { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } })],
    [
      'Unknown',
      aPod({ phase: 'Running', reason: 'NodeLost' }, { metadata: { deletionTimestamp: '2026-01-02T03:04:00Z' } }),
    ],
  ])('has the status %s', (status, pod) => {
    expect(cellsOf(podKind, pod).Status).toBe(status)
  })

  it('has the number of ready containers, including sidecars', () => {
    const sidecar = { name: 'side', restartPolicy: 'Always' }
    const status = {
      phase: 'Running',
      initContainerStatuses: [runningStatus({ name: 'side', started: true })],
      containerStatuses: [waitingStatus('CrashLoopBackOff')],
    }
    expect(cellsOf(podKind, aPod(status, { init: [sidecar] })).Ready).toBe('1/2')
  })

  it('has the number of restarts and the time since the last one', () => {
    const lastState = { terminated: { exitCode: 1, finishedAt: '2026-01-02T03:00:05Z' } }
    const statusWithRestarts = {
      phase: 'Running',
      containerStatuses: [runningStatus({ restartCount: 3, lastState }), runningStatus({ restartCount: 1 })],
    }
    expect(cellsOf(podKind, aPod(statusWithRestarts)).Restarts).toBe('4 (4m ago)')
    expect(cellsOf(podKind, aPod({ phase: 'Running', containerStatuses: [runningStatus()] })).Restarts).toBe('0')
  })

  it('has the IP, the node and the readiness gates in wide columns', () => {
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
