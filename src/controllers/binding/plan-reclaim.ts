// Plans the reclaim of a released volume. The binder does not delete storage: it determines the provisioner that must.
// Pure.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Volume } from '../../volumes/matching.ts'
import { IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY } from '../../volumes/names.ts'
import { deleterNotFound, noDeleter, noRecycler, unknownPolicy, volumeUsedByPods } from './events.ts'

/** A provisioner that runs in this process and deletes its own volumes. */
export interface InProcessProvisioner {
  readonly name: string
  /** Whether a volume without the provisioned-by annotation belongs to this provisioner, according to its source. */
  owns(volume: Volume): boolean
}

export interface ReclaimSituation {
  readonly volume: Volume
  readonly inProcessProvisioners: readonly InProcessProvisioner[]
  /** Returns the pods that use the volume's claim and have not terminated, as `namespace/name`. */
  activePods(): readonly string[]
}

export type Reclaim =
  /** `provisioner` deletes the volume; undefined if the volume is retained. */
  | { readonly is: 'delegated'; readonly provisioner: string | undefined; readonly message: string }
  | { readonly is: 'blocked'; readonly event: EventDetails }
  | { readonly is: 'failed'; readonly event: EventDetails }

export function planReclaim({ volume, inProcessProvisioners, activePods }: ReclaimSituation): Reclaim {
  const migratedDriver = annotationOf(volume, MIGRATED_TO)
  if (migratedDriver) return delegateTo(migratedDriver)
  switch (volume.spec?.persistentVolumeReclaimPolicy) {
    case 'Retain': {
      const message =
        'the volume is released and its reclaim policy is Retain: no claim can use its data until its claimRef is removed'
      return { is: 'delegated', provisioner: undefined, message }
    }
    case 'Delete':
      return planDelete(volume, inProcessProvisioners)
    case 'Recycle': {
      const pods = activePods()
      return pods.length > 0 ? { is: 'blocked', event: volumeUsedByPods(pods) } : { is: 'failed', event: noRecycler }
    }
    default:
      return { is: 'failed', event: unknownPolicy }
  }
}

function planDelete(volume: Volume, inProcess: readonly InProcessProvisioner[]): Reclaim {
  const provisioner = annotationOf(volume, PROVISIONED_BY)
  if (provisioner) {
    const isKnown = inProcess.some(({ name }) => name === provisioner)
    return isKnown || !provisioner.startsWith(IN_TREE_PREFIX)
      ? delegateTo(provisioner)
      : { is: 'failed', event: deleterNotFound(provisioner) }
  }
  const { csi } = volume.spec ?? {}
  if (csi) return delegateTo(csi.driver)
  const owner = inProcess.find((candidate) => candidate.owns(volume))
  return owner ? delegateTo(owner.name) : { is: 'failed', event: noDeleter(volume.metadata.name) }
}

const delegateTo = (provisioner: string): Reclaim => ({
  is: 'delegated',
  provisioner,
  message: `the volume is released: waiting for the provisioner "${provisioner}" to delete it`,
})
