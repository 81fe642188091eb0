// Calculates the status of a stateful set from its pods. Pure.
import { type JsonObject, jsonEquals } from '../../api/json-value.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { StatefulSet, StatefulSetStatus } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { replicasOf, revisionOf } from './identity.ts'
import { availableAtMs, isAvailable, isRunningAndReady, isTerminating } from './pod-state.ts'

interface StatusInput {
  readonly set: Readonly<StatefulSet>
  readonly pods: readonly Readonly<Pod>[]
  /** Names of the revisions. */
  readonly currentRevision: string
  readonly updateRevision: string
  readonly collisionCount: number
  readonly nowMs: number
}

export function calculateStatus(input: StatusInput): StatefulSetStatus {
  const { set, pods, currentRevision, updateRevision, collisionCount, nowMs } = input
  const minReadySeconds = set.spec?.minReadySeconds ?? 0
  const readyPods = pods.filter(isRunningAndReady)
  const nonTerminatingPods = pods.filter((pod) => !isTerminating(pod))
  const status = {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: pods.length,
    readyReplicas: readyPods.length,
    availableReplicas: readyPods.filter((pod) => isAvailable(pod, minReadySeconds, nowMs)).length,
    currentReplicas: nonTerminatingPods.filter((pod) => revisionOf(pod) === currentRevision).length,
    updatedReplicas: nonTerminatingPods.filter((pod) => revisionOf(pod) === updateRevision).length,
    currentRevision,
    updateRevision,
    collisionCount,
    ...(set.status?.conditions ? { conditions: set.status.conditions } : {}),
  }
  const replicas = replicasOf(set)
  const isUpdated =
    status.updatedReplicas === replicas && status.readyReplicas === replicas && status.replicas === replicas
  return isUpdated ? { ...status, currentReplicas: status.updatedReplicas, currentRevision: updateRevision } : status
}

/** Whether the stored status has the same values. An absent counter is 0. */
export function isSameStatus(stored: StatefulSetStatus | undefined, status: StatefulSetStatus): boolean {
  const withoutZeros = (value: object) =>
    Object.fromEntries(Object.entries(value).filter(([, item]) => item !== 0)) as JsonObject
  return jsonEquals(withoutZeros(stored ?? {}), withoutZeros(status))
}

/** Returns the time at which the next ready pod becomes available, or undefined if all ready pods are. */
export function nextAvailabilityMs({
  set,
  pods,
  nowMs,
}: Pick<StatusInput, 'set' | 'pods' | 'nowMs'>): number | undefined {
  const times = pods
    .map((pod) => availableAtMs(pod, set.spec?.minReadySeconds ?? 0))
    .filter((timeMs) => timeMs !== undefined && timeMs > nowMs)
  return times.length > 0 ? Math.min(...(times as number[])) : undefined
}
