// The metrics of provisioning and deletion, with the names that external-provisioner uses.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'

/** One instance per process, which its provisioners share. */
export interface ProvisioningMetrics {
  recordProvision(claim: Readonly<PersistentVolumeClaim>, seconds: number): void
  recordProvisionFailure(claim: Readonly<PersistentVolumeClaim>): void
  recordDelete(volume: Readonly<PersistentVolume>, seconds: number): void
  recordDeleteFailure(volume: Readonly<PersistentVolume>): void
}

export function createProvisioningMetrics(registry: Registry): ProvisioningMetrics {
  const claimLabels = { labelNames: ['class', 'source'] as const, registers: [registry] }
  const volumeLabels = { labelNames: ['class'] as const, registers: [registry] }
  const claimMetric = (suffix: string) => `controller_persistentvolumeclaim_provision_${suffix}`
  const volumeMetric = (suffix: string) => `controller_persistentvolume_delete_${suffix}`
  const provisions = new Counter({ name: claimMetric('total'), help: 'Volumes provisioned.', ...claimLabels })
  const provisionFailures = new Counter({
    name: claimMetric('failed_total'),
    help: 'Failed attempts to provision a volume.',
    ...claimLabels,
  })
  const provisionSeconds = new Histogram({
    name: claimMetric('duration_seconds'),
    help: 'Seconds from the call to the storage until the PV is created, for successful attempts.',
    ...claimLabels,
  })
  const deletes = new Counter({ name: volumeMetric('total'), help: 'Volumes deleted.', ...volumeLabels })
  const deleteFailures = new Counter({
    name: volumeMetric('failed_total'),
    help: 'Failed attempts to delete a volume.',
    ...volumeLabels,
  })
  const deleteSeconds = new Histogram({
    name: volumeMetric('duration_seconds'),
    help: 'Seconds from the call to the storage until the volume is deleted, for successful attempts.',
    ...volumeLabels,
  })
  return {
    recordProvision(claim, durationSeconds) {
      provisions.inc(labelsOf(claim))
      provisionSeconds.observe(labelsOf(claim), durationSeconds)
    },
    recordProvisionFailure: (claim) => provisionFailures.inc(labelsOf(claim)),
    recordDelete(volume, durationSeconds) {
      deletes.inc({ class: volumeClassName(volume) })
      deleteSeconds.observe({ class: volumeClassName(volume) }, durationSeconds)
    },
    recordDeleteFailure: (volume) => deleteFailures.inc({ class: volumeClassName(volume) }),
  }
}

const labelsOf = (claim: Readonly<PersistentVolumeClaim>) => ({
  class: claimClassName(claim) ?? '',
  source: claim.spec?.dataSource?.kind ?? claim.spec?.dataSourceRef?.kind ?? '',
})
