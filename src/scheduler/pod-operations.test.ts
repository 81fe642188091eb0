import { expect, it } from 'vitest'
import type { Activity } from '../api/kinds/operation/activity-schema.ts'
import { manualClock } from '../base/manual-clock.ts'
import { createOperationRegistry } from '../runtime/index.ts'
import { followPods } from './pod-operations.ts'
import type { QueuedPodStatus, SchedulingQueue } from './queue/queue.ts'

it('PLUS-15 followPods lists a pod whose volumes are being bound with the reason, and keeps the start of its attempt', async () => {
  const clock = manualClock()
  const registry = createOperationRegistry({ process: 'scheduler', clock })
  const activities: Activity[] = []
  registry.subscribeActivities((activity) => void activities.push(activity))
  let status: Partial<QueuedPodStatus> | undefined
  const queue = { status: () => status, onChange: undefined as ((key: string) => void) | undefined }
  followPods(queue as unknown as SchedulingQueue, registry, clock)
  const change = (next: Partial<QueuedPodStatus>) => {
    status = { key: 'shop/web', uid: 'u', attempts: 1, addedAtMs: 0, reasons: [], ...next }
    queue.onChange!('shop/web')
  }
  const awaited = { reason: 'WaitingForVolumes', message: 'Node "n1" is selected' }
  change({ state: 'in flight', message: 'no node has 20Gi' })
  await clock.advance(3)
  change({ state: 'in flight', message: 'no node has 20Gi', awaited })
  expect(registry.list()).toMatchObject([{ phase: 'Running', ...awaited }])
  await clock.advance(4)
  change({ state: 'backoff', message: 'binding failed' })
  expect(activities).toMatchObject([{ message: 'binding failed', durationMs: 7 }])
})

it('PLUS-6 followPods records a failed scheduling attempt with its duration, and again only for a new reason', async () => {
  const clock = manualClock()
  const registry = createOperationRegistry({ process: 'scheduler', clock })
  const activities: Activity[] = []
  registry.subscribeActivities((activity) => void activities.push(activity))
  let status: Partial<QueuedPodStatus> | undefined
  const queue = { status: () => status, onChange: undefined as ((key: string) => void) | undefined }
  followPods(queue as unknown as SchedulingQueue, registry, clock)
  const change = (next: Partial<QueuedPodStatus> | undefined) => {
    status = next && { key: 'shop/web', uid: 'u', attempts: 1, ...next }
    queue.onChange!('shop/web')
  }
  change({ state: 'in flight' })
  await clock.advance(7)
  change({ state: 'unschedulable', message: 'no node has 20Gi' })
  change({ state: 'in flight', message: 'no node has 20Gi' })
  change({ state: 'unschedulable', message: 'no node has 20Gi' })
  change({ state: 'unschedulable', message: 'the node is full' })
  change(undefined)
  expect(activities.map(({ message, durationMs }) => [message, durationMs])).toEqual([
    ['no node has 20Gi', 7],
    ['the node is full', 0],
  ])
  expect(activities[0]).toMatchObject({
    ...{ component: 'scheduler', operation: 'Schedule', result: 'Stuck' },
    object: { kind: 'Pod', namespace: 'shop', name: 'web', uid: 'u' },
  })
})
