// Runs the queueing hints that plugins declare: indexes unschedulable pods by the keys of the hints of the plugins that
// rejected them, and requeues the pods that an event can make schedulable. Knows no plugin by name.
import type { PodInfo } from './cluster/pod-info.ts'
import type { ClusterEvent, EventName, HintContext, PluginRejection, QueueingHint } from './framework/cluster-events.ts'
import type { Plugin } from './framework/plugin.ts'
import { reasonKey } from './framework/status.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import type { IndexKeys, Rejection } from './queue/unschedulable-pods.ts'

interface RegisteredHint {
  readonly id: number
  readonly hint: QueueingHint
  /** The plugins that declare it. A hint shared by several plugins runs once per event. */
  readonly plugins: string[]
}

export interface QueueingHints {
  /** The keys by which events find an unschedulable pod. */
  keysOf(pod: PodInfo, rejection: Rejection): IndexKeys
  /** Requeues every pod that the event can make schedulable. */
  dispatch(event: ClusterEvent, queue: SchedulingQueue): void
}

export function createQueueingHints(plugins: readonly Plugin[], checkNode: HintContext['checkNode']): QueueingHints {
  const registered = registerHints(plugins)
  const byEvent = new Map<EventName, RegisteredHint[]>()
  for (const one of registered) byEvent.set(one.hint.on, [...(byEvent.get(one.hint.on) ?? []), one])

  function keysOf(pod: PodInfo, { rejectedBy }: Rejection): IndexKeys {
    const keys = { class: new Set<string>(), pod: new Set<string>() }
    for (const { id, hint, plugins: declaring } of registered) {
      if (!declaring.some((name) => rejectedBy.has(name))) continue
      for (const key of hint.keysOfPod(pod)) keys[hint.scope].add(`${id} ${key}`)
    }
    return { ofClass: [...keys.class], ofPod: [...keys.pod] }
  }

  function dispatch(event: ClusterEvent, queue: SchedulingQueue): void {
    const { unschedulable } = queue
    if (unschedulable.size === 0) return
    // Where several hints requeue a class, the first is enough: its next pod follows once this one is placed.
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

  /** The node that changed rejects the pod for a new reason: from now on it also waits for what resolves that one. */
  function addRejection(
    { plugin, status }: PluginRejection,
    pod: QueuedPod,
    known: Rejection,
    queue: SchedulingQueue,
  ): void {
    const rejection: Rejection = {
      ...known,
      rejectedBy: new Set([...known.rejectedBy, plugin]),
      reasons: new Set([...known.reasons, ...status.reasons.map(reasonKey)]),
    }
    queue.unschedulable.replaceRejection(pod.key, rejection, (one) => keysOf(one.info, rejection))
  }

  return { keysOf, dispatch }
}

function registerHints(plugins: readonly Plugin[]): RegisteredHint[] {
  const byHint = new Map<QueueingHint, RegisteredHint>()
  for (const { name, events } of plugins) {
    for (const hint of events) {
      const known = byHint.get(hint)
      if (known) known.plugins.push(name)
      else byHint.set(hint, { id: byHint.size, hint, plugins: [name] })
    }
  }
  return [...byHint.values()]
}
