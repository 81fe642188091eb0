// Plans the reclaim of a released volume. The binder deletes no storage: it finds the provisioner that must, and
// reports a failure if none exists. Pure.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Volume } from '../../volumes/matching.ts'
import { IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY } from '../../volumes/names.ts'
import { deleterUnknown, noDeleter, noRecycler, unknownPolicy, usedByPods } from './events.ts'

/** A provisioner that runs in this process and deletes its own volumes. */
export interface InProcessProvisioner {
  readonly name: string
  /** Whether a volume without the provisioned-by annotation belongs to it, by its source. */
  owns(volume: Volume): boolean
}

export interface ReclaimSituation {
  readonly volume: Volume
  readonly inProcess: readonly InProcessProvisioner[]
  /** Pods that use the volume's claim and have not ended, as `namespace/name`. */
  activePods(): readonly string[]
}

export type Reclaim =
  /** `to`: the provisioner that deletes it; undefined if nothing is due. */
  | { readonly is: 'delegated'; readonly to: string | undefined; readonly because: string }
  | { readonly is: 'blocked'; readonly event: EventDetails }
  | { readonly is: 'failed'; readonly event: EventDetails }

export function planReclaim({ volume, inProcess, activePods }: ReclaimSituation): Reclaim {
  const migratedTo = annotationOf(volume, MIGRATED_TO)
  if (migratedTo) return delegatedTo(migratedTo)
  switch (volume.spec?.persistentVolumeReclaimPolicy) {
    case 'Retain': {
      const because =
        'its claim was deleted and its reclaim policy is Retain: it keeps its data until its claimRef is removed'
      return { is: 'delegated', to: undefined, because }
    }
    case 'Delete':
      return planDelete(volume, inProcess)
    case 'Recycle': {
      const pods = activePods()
      return pods.length > 0 ? { is: 'blocked', event: usedByPods(pods) } : { is: 'failed', event: noRecycler }
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
      ? delegatedTo(provisioner)
      : { is: 'failed', event: deleterUnknown(provisioner) }
  }
  const { csi } = volume.spec ?? {}
  if (csi) return delegatedTo(csi.driver)
  const owner = inProcess.find((one) => one.owns(volume))
  return owner ? delegatedTo(owner.name) : { is: 'failed', event: noDeleter(volume.metadata.name) }
}

const delegatedTo = (provisioner: string): Reclaim => ({
  is: 'delegated',
  to: provisioner,
  because: `its claim was deleted: waiting for the provisioner "${provisioner}" to delete it`,
})
