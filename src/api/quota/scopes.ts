// Decides whether a quota counts an object, which must match all scopes and all expressions of the scope selector. Every
// scope applies either to pods or to claims, so a quota with a scope counts no other kind.

import type { KubeObject } from '../kind.ts'
import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { qosClassOf } from '../kinds/pod/pod-qos.ts'
import type { Pod } from '../kinds/pod/pod-schema.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { CLAIMS, type GroupResource, isSameKind, PODS } from './usage.ts'

interface Requirement {
  readonly scopeName: string
  readonly operator: string
  readonly values?: readonly string[]
}

export function isInScope(spec: ResourceQuota['spec'], kind: GroupResource, object: KubeObject): boolean {
  return requirementsOf(spec).every((requirement) => {
    if (isSameKind(kind, CLAIMS)) return claimMatches(requirement, object as PersistentVolumeClaim)
    if (isSameKind(kind, PODS)) return podMatches(requirement, object as Pod)
    return false
  })
}

function requirementsOf(spec: ResourceQuota['spec']): readonly Requirement[] {
  const expressions = spec?.scopeSelector?.matchExpressions ?? []
  if (!spec?.scopes || spec.scopes.length === 0) return expressions
  return [...spec.scopes.map((scopeName) => ({ scopeName, operator: 'Exists' })), ...expressions]
}

/** Compares with the requested, the current and the target class, which differ during a change to the attributes class. */
function claimMatches({ scopeName, operator, values = [] }: Requirement, claim: PersistentVolumeClaim): boolean {
  if (scopeName !== 'VolumeAttributesClass') return false
  const { spec, status } = claim
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
    .filter((name) => name !== undefined)
    .filter((name) => name !== '')
  switch (operator) {
    case 'In':
      return names.some((name) => values.includes(name))
    case 'NotIn':
      return names.length === 0 || names.some((name) => !values.includes(name))
    case 'Exists':
      return names.length > 0
    default:
      return names.length === 0
  }
}

function podMatches(requirement: Requirement, pod: Pod): boolean {
  switch (requirement.scopeName) {
    case 'Terminating':
      return hasDeadline(pod)
    case 'NotTerminating':
      return !hasDeadline(pod)
    case 'BestEffort':
      return isBestEffort(pod)
    case 'NotBestEffort':
      return !isBestEffort(pod)
    case 'PriorityClass':
      return priorityClassMatches(requirement, pod.spec?.priorityClassName ?? '')
    case 'CrossNamespacePodAffinity':
      return affinityTerms(pod).some((term) => (term.namespaces?.length ?? 0) > 0 || term.namespaceSelector != null)
    default:
      return false
  }
}

const hasDeadline = ({ spec }: Pod): boolean => (spec?.activeDeadlineSeconds ?? -1) >= 0

const isBestEffort = ({ spec }: Pod): boolean => spec !== undefined && qosClassOf(spec) === 'BestEffort'

function priorityClassMatches({ operator, values = [] }: Requirement, name: string): boolean {
  switch (operator) {
    case 'In':
      return name !== '' && values.includes(name)
    case 'NotIn':
      return name === '' || !values.includes(name)
    case 'Exists':
      return name !== ''
    default:
      return name === ''
  }
}

function affinityTerms({ spec }: Pod) {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {}
  return [podAffinity, podAntiAffinity].flatMap((affinity) => [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ])
}
