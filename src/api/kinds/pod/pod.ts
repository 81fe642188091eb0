// Declares Pod: containers that run on the same node and share volumes.
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateEphemeralContainers } from './ephemeral-container-rules.ts'
import { hasTerminated } from './has-terminated.ts'
import { podColumns } from './pod-columns.ts'
import { setPodDefaults } from './pod-defaults.ts'
import { qosClassOf } from './pod-qos.ts'
import { validateNewPod, validatePodSpec } from './pod-rules.ts'
import { type Pod, pod } from './pod-schema.ts'
import { validatePodStatus } from './pod-status-rules.ts'
import { isSameSpec, validatePodUpdate } from './pod-update-rules.ts'

export const podKind = defineKind<Pod>({
  group: '',
  versions: ['v1'],
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  shortNames: ['po'],
  categories: ['all'],
  namespaced: true,
  type: pod,

  nameErrors: dns1123SubdomainProblems,
  defaults: setPodDefaults,
  prepareForCreate(object) {
    const spec = object.spec ?? { containers: [] }
    object.status = { phase: 'Pending', qosClass: qosClassOf(spec) }
    if (spec.schedulingGates?.length) {
      object.status.conditions = [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'SchedulingGated',
          message: 'Scheduling is blocked due to non-empty scheduling gates',
        },
      ]
    }
  },
  validate(object, errors, context, old) {
    if (old && isSameSpec(object, old)) return // the stored spec has already been validated
    validatePodSpec(object, errors, context)
    if (!old) validateNewPod(object, errors)
  },
  validateUpdate: validatePodUpdate,
  status: {
    acceptsMetadata: true,
    prepare(next, old) {
      if (old.status?.qosClass) next.status = { ...next.status, qosClass: next.status?.qosClass ?? old.status.qosClass }
      keepObservedGenerations(next, old)
    },
    validate: validatePodStatus,
  },
  ephemeralContainers: { validate: validateEphemeralContainers },

  selectableFields: {
    'spec.nodeName': (object) => object.spec?.nodeName,
    'spec.host': (object) => object.spec?.nodeName, // deprecated name
    'spec.restartPolicy': (object) => object.spec?.restartPolicy,
    'spec.schedulerName': (object) => object.spec?.schedulerName,
    'spec.serviceAccountName': (object) => object.spec?.serviceAccountName,
    'spec.hostNetwork': (object) => String(object.spec?.hostNetwork ?? false),
    'status.phase': (object) => object.status?.phase,
    'status.podIP': (object) => object.status?.podIP,
    'status.podIPs': (object) => (object.status?.podIPs ?? []).map(({ ip }) => ip).join(','),
    'status.nominatedNodeName': (object) => object.status?.nominatedNodeName,
  },
  columns: podColumns,
  deleteReturnsObject: true,
  generationOf: (object) => object.spec,
  gracePeriodSeconds,
})

/** Keeps observedGeneration of the status and of its conditions if a write omits it, as older clients do. */
function keepObservedGenerations({ status }: Pod, { status: old }: Pod): void {
  if (!status) return
  if (!status.observedGeneration && old?.observedGeneration) status.observedGeneration = old.observedGeneration
  for (const condition of status.conditions ?? []) {
    const previousGeneration = old?.conditions?.find(({ type }) => type === condition.type)?.observedGeneration
    if (!condition.observedGeneration && previousGeneration) condition.observedGeneration = previousGeneration
  }
}

/** Returns 0 for a pod without a node and for a terminated pod, because they have no running containers. */
function gracePeriodSeconds(pod: Pod, requestedSeconds: number | undefined): number {
  if (!pod.spec?.nodeName || hasTerminated(pod)) return 0
  const seconds = requestedSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 0
  return seconds < 0 ? 1 : seconds
}
