// Runs the queueing hints that plugins declare. Indexes unschedulable pods by the keys that the hints of the rejecting
// plugins return, and requeues pods that an event can make schedulable.
import type { PodInfo } from './cluster/pod-info.ts'
import type { ClusterEvent, EventName, HintContext, PluginRejection, QueueingHint } from './framework/cluster-events.ts'
import type { Plugin } from './framework/plugin.ts'
import { reasonKey } from './framework/status.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import type { IndexKeys, Rejection } from './queue/unschedulable-pods.ts'

interface RegisteredHint {
  readonly id: number
  readonly hint: QueueingHint
  /** The names of the plugins that declare the hint. A shared hint runs once per event. */
  readonly plugins: string[]
}

export interface QueueingHints {
  /** Returns the keys by which events find an unschedulable pod. */
  keysOf(pod: PodInfo, rejection: Rejection): IndexKeys
  /** Requeues pods that the event can make schedulable. */
  dispatch(event: ClusterEvent, queue: SchedulingQueue): void
}

export function createQueueingHints(plugins: readonly Plugin[], checkNode: HintContext['checkNode']): QueueingHints {
  const registeredHints = registerHints(plugins)
  const byEvent = new Map<EventName, RegisteredHint[]>()
  for (const registered of registeredHints) {
    const { on } = registered.hint
    byEvent.set(on, [...(byEvent.get(on) ?? []), registered])
  }

  function keysOf(pod: PodInfo, { rejectedBy }: Rejection): IndexKeys {
    const keys = { class: new Set<string>(), pod: new Set<string>() }
    for (const { id, hint, plugins: pluginNames } of registeredHints) {
      if (!pluginNames.some((name) => rejectedBy.has(name))) continue
      for (const key of hint.keysOfPod(pod)) keys[hint.scope].add(`${id} ${key}`)
    }
    return { classKeys: [...keys.class], podKeys: [...keys.pod] }
  }

  function dispatch(event: ClusterEvent, queue: SchedulingQueue): void {
    const { unschedulable } = queue
    if (unschedulable.size === 0) return
    // If several hints apply to a class, only the first requeues a pod. The queue requeues the class's next pod when a
    // node is found for this one.
    const requeuedBy = new Map<object, number>()
    for (const { id, hint } of byEvent.get(event.on) ?? []) {
      const runHint = (pod: QueuedPod, rejection: Rejection): boolean => {
        const result = hint.hint?.(pod.info, event, { rejection, checkNode }) ?? 'queue'
        if (result === 'queue') queue.requeue(pod)
        else if (result !== 'skip') addRejection(result, pod, rejection, queue)
        return result === 'queue'
      }
      for (const key of hint.keysOfEvent(event)) {
        if (hint.scope === 'pod') {
          for (const pod of unschedulable.podsByKey(`${id} ${key}`)) {
            const rejection = unschedulable.rejectionOf(pod.key)
            if (rejection) runHint(pod, rejection)
          }
        } else {
          for (const group of unschedulable.classesByKey(`${id} ${key}`)) {
            const [first] = group.members
            if (!first || (requeuedBy.get(group) ?? id) !== id) continue
            if (runHint(first, group.rejection)) requeuedBy.set(group, id)
          }
        }
      }
    }
  }

  /** Adds a rejection for a new reason, so that the pod also waits for the hints of that plugin. */
  function addRejection(
    { plugin, status }: PluginRejection,
    pod: QueuedPod,
    previous: Rejection,
    queue: SchedulingQueue,
  ): void {
    const rejection: Rejection = {
      ...previous,
      rejectedBy: new Set([...previous.rejectedBy, plugin]),
      reasons: new Set([...previous.reasons, ...status.reasons.map(reasonKey)]),
    }
    queue.unschedulable.replaceRejection(pod.key, rejection, ({ info }) => keysOf(info, rejection))
  }

  return { keysOf, dispatch }
}

function registerHints(plugins: readonly Plugin[]): RegisteredHint[] {
  const byHint = new Map<QueueingHint, RegisteredHint>()
  for (const { name, events } of plugins) {
    for (const hint of events) {
      const existingEntry = byHint.get(hint)
      if (existingEntry) existingEntry.plugins.push(name)
      else byHint.set(hint, { id: byHint.size, hint, plugins: [name] })
    }
  }
  return [...byHint.values()]
}
