// An independent validator of stored objects that follows the API rules and shares no code with the server. It returns the
// problems of an object that the API returned and, given its previous state, of the change.
import { checkCertificateSigningRequest } from './certificates.ts'
import { checkClaim } from './claims.ts'
import { checkAttachment, checkCsiNode, checkDriver, checkStorageCapacity } from './drivers.ts'
import { collectFindings, type Report } from './findings.ts'
import { checkMetadata, type MetadataRules } from './metadata.ts'
import { isDnsLabel, isDnsSubdomain, isPathSegment } from './names.ts'
import { checkEvent, checkLease, checkNamespace } from './namespaces-leases-events.ts'
import { checkNode } from './nodes.ts'
import { checkPod } from './pods.ts'
import { checkPriorityClass } from './priority-classes.ts'
import { checkLimitRange, checkQuota } from './quotas.ts'
import { checkClusterRole, checkClusterRoleBinding, checkRole, checkRoleBinding } from './roles.ts'
import { checkConfigMap, checkSecret } from './secrets-config-maps.ts'
import { checkControllerRevision, checkStatefulSet } from './stateful-sets.ts'
import { checkAttributesClass, checkStorageClass } from './storage-classes.ts'
import { checkVolume } from './volumes.ts'
import { checkWire } from './wire.ts'

interface Validator extends MetadataRules {
  check(object: any, report: Report, old?: any): void
}

const inNamespace = { namespaced: true, isName: isDnsSubdomain, knownFinalizersOnly: true }
const inCluster = { namespaced: false, isName: isDnsSubdomain, knownFinalizersOnly: true }

const VALIDATORS: Record<string, Validator> = {
  CertificateSigningRequest: { ...inCluster, isName: isPathSegment, check: checkCertificateSigningRequest },
  ClusterRole: { ...inCluster, isName: isPathSegment, check: checkClusterRole },
  ClusterRoleBinding: { ...inCluster, isName: isPathSegment, check: checkClusterRoleBinding },
  ConfigMap: { ...inNamespace, check: checkConfigMap },
  ControllerRevision: { ...inNamespace, check: checkControllerRevision },
  CSIDriver: { ...inCluster, countsGenerations: true, check: checkDriver },
  CSINode: { ...inCluster, check: checkCsiNode },
  CSIStorageCapacity: { ...inNamespace, check: checkStorageCapacity },
  Event: { namespaced: true, isName: isPathSegment, knownFinalizersOnly: false, check: checkEvent },
  Lease: { ...inNamespace, knownFinalizersOnly: false, check: checkLease },
  LimitRange: { ...inNamespace, check: checkLimitRange },
  Namespace: { namespaced: false, isName: isDnsLabel, knownFinalizersOnly: true, check: checkNamespace },
  Node: { ...inCluster, check: checkNode },
  PersistentVolume: { ...inCluster, check: checkVolume },
  PersistentVolumeClaim: { ...inNamespace, check: checkClaim },
  Pod: { ...inNamespace, check: checkPod },
  PriorityClass: { ...inCluster, check: checkPriorityClass },
  ResourceQuota: { ...inNamespace, check: checkQuota },
  Role: { ...inNamespace, isName: isPathSegment, check: checkRole },
  RoleBinding: { ...inNamespace, isName: isPathSegment, check: checkRoleBinding },
  Secret: { ...inNamespace, check: checkSecret },
  ServiceAccount: { ...inNamespace, check: () => {} },
  StatefulSet: { ...inNamespace, isName: isDnsLabel, countsGenerations: true, check: checkStatefulSet },
  StorageClass: { ...inCluster, check: checkStorageClass },
  VolumeAttachment: { ...inCluster, check: checkAttachment },
  VolumeAttributesClass: { ...inCluster, check: checkAttributesClass },
}

export const VALIDATED_KINDS = Object.keys(VALIDATORS)

export function check(kind: string, object: any, old?: any): string[] {
  const validator = VALIDATORS[kind]
  if (!validator) return [`no validator for kind ${kind}`]
  return collectFindings((report) => {
    if (object.kind !== kind) report('kind', `${object.kind} instead of ${kind}`)
    checkWire(object, kind, report)
    checkMetadata(object.metadata, validator, report, old?.metadata)
    validator.check(object, report, old)
  })
}
