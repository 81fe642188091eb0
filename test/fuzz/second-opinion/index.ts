// A second opinion on stored objects, written from the rules alone and sharing no code with the server:
// where the two disagree, one of them is wrong. Says what is wrong with an object as the API answered it and,
// given the state before, with the change; nothing wrong is an empty list.
import { checkClaim } from './claims.ts'
import { checkConfigMap, checkSecret } from './configuration.ts'
import { checkAttachment, checkCsiNode, checkDriver, checkStorageCapacity } from './drivers.ts'
import { collectFindings, type Say } from './findings.ts'
import { checkMetadata, type MetadataRules } from './metadata.ts'
import { isDnsLabel, isDnsSubdomain, isPathSegment } from './names.ts'
import { checkNode } from './nodes.ts'
import { checkPod } from './pods.ts'
import { checkLimitRange, checkQuota } from './quotas.ts'
import { checkEvent, checkLease, checkNamespace } from './records.ts'
import { checkAttributesClass, checkStorageClass } from './storage-classes.ts'
import { checkVolume } from './volumes.ts'
import { checkWire } from './wire.ts'

interface Opinion extends MetadataRules {
  look(object: any, say: Say, old?: any): void
}

const inNamespace = { namespaced: true, isName: isDnsSubdomain, knownFinalizersOnly: true }
const inCluster = { namespaced: false, isName: isDnsSubdomain, knownFinalizersOnly: true }

const OPINIONS: Record<string, Opinion> = {
  ConfigMap: { ...inNamespace, look: checkConfigMap },
  CSIDriver: { ...inCluster, countsGenerations: true, look: checkDriver },
  CSINode: { ...inCluster, look: checkCsiNode },
  CSIStorageCapacity: { ...inNamespace, look: checkStorageCapacity },
  Event: { namespaced: true, isName: isPathSegment, knownFinalizersOnly: false, look: checkEvent },
  Lease: { ...inNamespace, knownFinalizersOnly: false, look: checkLease },
  LimitRange: { ...inNamespace, look: checkLimitRange },
  Namespace: { namespaced: false, isName: isDnsLabel, knownFinalizersOnly: true, look: checkNamespace },
  Node: { ...inCluster, look: checkNode },
  PersistentVolume: { ...inCluster, look: checkVolume },
  PersistentVolumeClaim: { ...inNamespace, look: checkClaim },
  Pod: { ...inNamespace, look: checkPod },
  ResourceQuota: { ...inNamespace, look: checkQuota },
  Secret: { ...inNamespace, look: checkSecret },
  ServiceAccount: { ...inNamespace, look: () => {} },
  StorageClass: { ...inCluster, look: checkStorageClass },
  VolumeAttachment: { ...inCluster, look: checkAttachment },
  VolumeAttributesClass: { ...inCluster, look: checkAttributesClass },
}

export const KINDS_WITH_OPINION = Object.keys(OPINIONS)

export function check(kind: string, object: any, old?: any): string[] {
  const opinion = OPINIONS[kind]
  if (!opinion) return [`no opinion on kind ${kind}`]
  return collectFindings((say) => {
    if (object.kind !== kind) say('kind', `${object.kind} instead of ${kind}`)
    checkWire(object, kind, say)
    checkMetadata(object.metadata, opinion, say, old?.metadata)
    opinion.look(object, say, old)
  })
}
