// How many volumes were provisioned and deleted, how many tries failed, and how long it took, under the names that
// operators already chart for external provisioners.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'

/** One for the process, however many provisioners it runs. */
export interface ProvisioningMetrics {
  provisioned(claim: Readonly<PersistentVolumeClaim>, seconds: number): void
  provisioningFailed(claim: Readonly<PersistentVolumeClaim>): void
  deleted(volume: Readonly<PersistentVolume>, seconds: number): void
  deletingFailed(volume: Readonly<PersistentVolume>): void
}

export function createProvisioningMetrics(registry: Registry): ProvisioningMetrics {
  const perClaim = { labelNames: ['class', 'source'] as const, registers: [registry] }
  const perVolume = { labelNames: ['class'] as const, registers: [registry] }
  const claimMetric = (what: string) => `controller_persistentvolumeclaim_provision_${what}`
  const volumeMetric = (what: string) => `controller_persistentvolume_delete_${what}`
  const provisions = new Counter({ name: claimMetric('total'), help: 'Volumes provisioned.', ...perClaim })
  const failures = new Counter({ name: claimMetric('failed_total'), help: 'Tries that failed.', ...perClaim })
  const seconds = new Histogram({
    name: claimMetric('duration_seconds'),
    help: 'From asking the storage to having saved the volume; successes only.',
    ...perClaim,
  })
  const deletes = new Counter({ name: volumeMetric('total'), help: 'Volumes deleted.', ...perVolume })
  const deleteFailures = new Counter({ name: volumeMetric('failed_total'), help: 'Tries that failed.', ...perVolume })
  const deleteSeconds = new Histogram({
    name: volumeMetric('duration_seconds'),
    help: 'From asking the storage to having deleted the volume; successes only.',
    ...perVolume,
  })
  return {
    provisioned(claim, took) {
      provisions.inc(labelsOf(claim))
      seconds.observe(labelsOf(claim), took)
    },
    provisioningFailed: (claim) => failures.inc(labelsOf(claim)),
    deleted(volume, took) {
      deletes.inc({ class: volumeClassName(volume) })
      deleteSeconds.observe({ class: volumeClassName(volume) }, took)
    },
    deletingFailed: (volume) => deleteFailures.inc({ class: volumeClassName(volume) }),
  }
}

const labelsOf = (claim: Readonly<PersistentVolumeClaim>) => ({
  class: claimClassName(claim) ?? '',
  source: claim.spec?.dataSource?.kind ?? claim.spec?.dataSourceRef?.kind ?? '',
})
