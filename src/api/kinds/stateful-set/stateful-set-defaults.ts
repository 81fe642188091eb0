// Sets the defaults of a stateful set, its pod template and its claim templates.
import { setPodSpecDefaults } from '../pod/pod-defaults.ts'
import type { StatefulSet } from './stateful-set-schema.ts'

export function setStatefulSetDefaults(set: StatefulSet): void {
  set.spec ??= { template: { spec: { containers: [] } } }
  const { spec } = set
  setPodSpecDefaults(spec.template.spec)
  for (const claim of spec.volumeClaimTemplates ?? []) {
    claim.spec ??= {}
    claim.spec.volumeMode ??= 'Filesystem'
    claim.status ??= { phase: 'Pending' }
  }
  spec.podManagementPolicy ??= 'OrderedReady'
  spec.updateStrategy ??= {}
  if (spec.updateStrategy.type === undefined) {
    spec.updateStrategy.type = 'RollingUpdate'
    spec.updateStrategy.rollingUpdate ??= {}
  }
  const { type, rollingUpdate } = spec.updateStrategy
  if (type === 'RollingUpdate' && rollingUpdate) {
    rollingUpdate.partition ??= 0
    rollingUpdate.maxUnavailable ??= 1
  }
  spec.persistentVolumeClaimRetentionPolicy ??= {}
  spec.persistentVolumeClaimRetentionPolicy.whenDeleted ??= 'Retain'
  spec.persistentVolumeClaimRetentionPolicy.whenScaled ??= 'Retain'
  spec.replicas ??= 1
  spec.revisionHistoryLimit ??= 10
  // Kubernetes always sends these two counters, even after a patch that removed the status.
  set.status ??= { replicas: 0 }
  set.status.availableReplicas ??= 0
}
