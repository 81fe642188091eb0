import { describe, expect, it } from 'vitest'
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { type ManualClock, manualClock } from '../../base/manual-clock.ts'
import { CsiError } from '../../csi/index.ts'
import { backOff, checkAfter, done, type Outcome, retryAfter, stuck } from '../outcome.ts'
import { createWorkQueue, type WorkQueue } from '../work-queue.ts'
import { createOperationRegistry, OPERATIONS_MAX, type OperationChanges } from './registry.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Creates a queue whose operations a registry follows. `reconcile` receives the object's name. */
function createHarness(reconcile: (name: string) => Promise<Outcome>) {
  const clock: ManualClock = manualClock()
  const registry = createOperationRegistry({ process: 'test@host:1', clock })
  const follower = registry.follow({
    component: 'provisioner',
    queue: 'claims',
    stateOf: (key) => queue.stateOf(key),
    subjectOf: (key) => ({
      operation: 'Provision',
      object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: key, uid: `uid-${key}` },
    }),
  })
  const queue: WorkQueue = createWorkQueue({
    name: 'claims',
    clock,
    random: () => 1,
    workers: OPERATIONS_MAX * 2,
    onChange: follower.note,
    onAttempt: follower.recordAttempt,
  })
  const abort = new AbortController()
  const queueRun = queue.run((key) => reconcile(key), abort.signal)
  const changes: OperationChanges[] = []
  return {
    clock,
    registry,
    follower,
    queue,
    changes,
    follow: () => registry.subscribe((change) => changes.push(change)),
    async stop() {
      abort.abort()
      await queueRun
    },
  }
}

describe('the registry of operations', () => {
  it("PLUS-15 lists what a queue does and waits for, with the last attempt's result", async () => {
    const driverError = new CsiError('RESOURCE_EXHAUSTED', 'the pool is full')
    driverError.call = { driver: 'disk.example', method: 'CreateVolume' }
    const outcomes: Record<string, () => Promise<Outcome>> = {
      failed: () => Promise.reject(driverError),
      infeasible: async () => retryAfter(300_000, 'too large', driverError.operationDetails()),
      idle: async () => checkAfter(60_000, 'checked again'),
      running: () => new Promise(() => {}),
      timed: async () => retryAfter(5_000, 'the lease of the node ends'),
      stuck: async () => stuck('the class is missing', { waitsFor: { kind: 'StorageClass', name: 'fast' } }),
      finished: async () => done,
    }
    const { clock, registry, queue } = createHarness((name) => outcomes[name]!())
    for (const name of Object.keys(outcomes)) queue.add(name)
    await nextTurn()
    await clock.advance(10)
    const timestampAt = (ms: number) => new Date(clock.nowMs() - 10 + ms).toISOString().replace(/\.\d+/, '')
    const operationsByName = new Map(registry.list().map((operation) => [operation.object.name, operation]))
    expect([...operationsByName.keys()].sort()).toEqual(['failed', 'infeasible', 'running', 'stuck', 'timed'])
    const driverAnswer = { driver: 'disk.example', method: 'CreateVolume', code: 'ResourceExhausted' }
    expect(operationsByName.get('failed')).toEqual({
      metadata: {
        name: expect.stringMatching(/^failed\.[0-9a-f]{10}$/),
        namespace: 'shop',
        uid: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        creationTimestamp: timestampAt(0),
        labels: { 'stowage.dev/component': 'provisioner', 'stowage.dev/operation': 'Provision' },
      },
      object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'failed', uid: 'uid-failed' },
      component: 'provisioner',
      process: 'test@host:1',
      operation: 'Provision',
      phase: 'Retrying',
      reason: 'ResourceExhausted',
      message: 'the pool is full',
      attempts: 1,
      started: timestampAt(0),
      lastAttempt: timestampAt(0),
      nextAttempt: timestampAt(50),
      driverAnswer,
    })
    expect(operationsByName.get('infeasible')).toMatchObject({
      phase: 'Retrying',
      driverAnswer,
      nextAttempt: timestampAt(300_000),
    })
    expect(operationsByName.get('running')).toMatchObject({ phase: 'Running', attempts: 1 })
    expect(operationsByName.get('running')).not.toHaveProperty('nextAttempt')
    expect(operationsByName.get('timed')).toMatchObject({
      phase: 'Waiting',
      reason: 'WaitingForTime',
      nextAttempt: timestampAt(5_000),
    })
    expect(operationsByName.get('stuck')).toMatchObject({
      ...{ phase: 'Waiting', reason: 'WaitingForChange', message: 'the class is missing' },
      waitsFor: { kind: 'StorageClass', name: 'fast' },
    })
  })

  it('PLUS-15 passes changes to listeners once per second, and none for work that is done within that second', async () => {
    let outcome: Outcome = done
    const { clock, queue, changes, follow, stop, registry } = createHarness(async () => outcome)
    follow()
    for (let index = 0; index < 100; index++) queue.add(`quick-${index}`)
    await nextTurn()
    await clock.advance(1_000)
    expect(changes).toEqual([])

    outcome = stuck('waiting')
    queue.add('slow')
    await nextTurn()
    await clock.advance(999)
    expect(changes).toEqual([])
    await clock.advance(1)
    expect(changes).toEqual([{ changed: [expect.objectContaining({ phase: 'Waiting' })], removed: [] }])
    const [{ metadata }] = registry.list() as [ReturnType<typeof registry.list>[number]]
    outcome = done
    queue.add('slow')
    await nextTurn()
    await clock.advance(1_000)
    expect(changes[1]).toEqual({ changed: [], removed: [{ namespace: 'shop', name: metadata.name }] })
    await stop()
  })

  it('PLUS-15 removes the operations of a queue that stops', async () => {
    const { registry, queue, changes, follow, follower, clock } = createHarness(async () => backOff('failed'))
    follow()
    queue.add('a')
    await nextTurn()
    await clock.advance(1_000)
    expect(registry.list()).toHaveLength(1)
    follower.stop()
    expect(changes.at(-1)).toEqual({ changed: [], removed: [{ namespace: 'shop', name: expect.any(String) }] })
    expect(registry.list()).toEqual([])
  })

  it('PLUS-15 lists a bounded number of operations, and lists others after some are done', async () => {
    let outcome: Outcome = stuck('waiting')
    let reconciles = 0
    const { registry, queue } = createHarness(async () => {
      reconciles++
      return outcome
    })
    for (let index = 0; index < OPERATIONS_MAX + 5; index++) queue.add(`claim-${index}`)
    while (reconciles < OPERATIONS_MAX + 5) await nextTurn()
    expect(registry.list()).toHaveLength(OPERATIONS_MAX)
    outcome = done
    for (let index = 0; index < 10; index++) queue.add(`claim-${index}`)
    await nextTurn()
    outcome = stuck('waiting')
    for (let index = 0; index < 5; index++) queue.add(`claim-${OPERATIONS_MAX + index}`)
    await nextTurn()
    expect(registry.list()).toHaveLength(OPERATIONS_MAX - 5)
  })

  it('PLUS-6 passes failed attempts, new results and the success after them to the listeners for activities', async () => {
    const outcomes = [stuck('waits'), stuck('waits'), backOff('failed'), backOff('failed'), done, done]
    const { registry, queue, clock } = createHarness(async () => outcomes.shift() ?? done)
    const activities: Activity[] = []
    registry.subscribeActivities((activity) => void activities.push(activity))
    while (outcomes.length > 0) {
      queue.add('a')
      await nextTurn()
      await clock.advance(1)
    }
    expect(activities.map(({ result, message, attempt }) => [result, message, attempt])).toEqual([
      ['Stuck', 'waits', 1],
      ['Retry', 'failed', 3],
      ['Retry', 'failed', 4],
      ['Done', undefined, 5],
    ])
    expect(activities[1]).toMatchObject({
      ...{ component: 'provisioner', operation: 'Provision' },
      object: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'a', uid: 'uid-a' },
    })
  })

  it('PLUS-6 passes driver calls to the listeners for activities', () => {
    const clock = manualClock()
    const registry = createOperationRegistry({ process: 'p', clock })
    const activities: Activity[] = []
    registry.subscribeActivities((activity) => void activities.push(activity))
    registry.recordCall({ driver: 'd', method: 'CreateVolume', code: 'OK', volume: 'pvc-1', durationMs: 1.2345 })
    const start = `${new Date(clock.nowMs() - 2).toISOString().slice(0, 23)}000Z`
    const call = { result: 'OK', driver: 'd', method: 'CreateVolume', volume: 'pvc-1' }
    expect(activities).toEqual([{ start, durationMs: 1.235, ...call }])
  })

  it('PLUS-15 lists separate operations for two queues with the same name and key', () => {
    const clock = manualClock()
    const registry = createOperationRegistry({ process: 'p', clock })
    const queues = [1, 2].map(() => {
      const queue: WorkQueue = createWorkQueue({ name: 'claims', clock, random: () => 1 })
      const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'a' }
      const follower = registry.follow({
        component: 'provisioner',
        queue: 'claims',
        stateOf: queue.stateOf,
        subjectOf: () => ({ operation: 'Provision', object }),
      })
      queue.add('shop/a')
      follower.note('shop/a')
      return queue
    })
    expect(queues).toHaveLength(2)
    expect(new Set(registry.list().map(({ metadata }) => metadata.name)).size).toBe(2)
    expect(registry.list()[0]).toMatchObject({ phase: 'Waiting', reason: 'Queued', attempts: 0 })
  })
})
