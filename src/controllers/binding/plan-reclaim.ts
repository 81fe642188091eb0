// What becomes of a volume whose claim is gone. The binder itself destroys nothing: it knows whose job it is, and says
// so when it is nobody's. Pure.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { Happening } from '../../runtime/index.ts'
import type { Volume } from '../../volumes/matching.ts'
import { IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY } from '../../volumes/names.ts'
import { deleterUnknown, noDeleter, noRecycler, unknownPolicy, usedByPods } from './events.ts'

/** A provisioner that runs in this process: its volumes are its own to delete. */
export interface InProcessProvisioner {
  readonly name: string
  /** Whether a volume that carries no provisioner's name is this one's, by its source. */
  owns(volume: Volume): boolean
}

export interface ReclaimSituation {
  readonly volume: Volume
  readonly inProcess: readonly InProcessProvisioner[]
  /** As `namespace/name`: pods that name the volume's claim and have not ended. */
  activePods(): readonly string[]
}

export type Reclaim =
  /** Somebody else acts, or nobody has to. */
  | { readonly is: 'left'; readonly to: string | undefined; readonly because: string }
  | { readonly is: 'held'; readonly tell: Happening }
  | { readonly is: 'impossible'; readonly tell: Happening }

export function planReclaim({ volume, inProcess, activePods }: ReclaimSituation): Reclaim {
  const migratedTo = annotationOf(volume, MIGRATED_TO)
  if (migratedTo) return leftTo(migratedTo)
  switch (volume.spec?.persistentVolumeReclaimPolicy) {
    case 'Retain': {
      const because = 'its claim is gone and its policy is Retain: it keeps its data until its claimRef is removed'
      return { is: 'left', to: undefined, because }
    }
    case 'Delete':
      return planDelete(volume, inProcess)
    case 'Recycle': {
      const pods = activePods()
      return pods.length > 0 ? { is: 'held', tell: usedByPods(pods) } : { is: 'impossible', tell: noRecycler }
    }
    default:
      return { is: 'impossible', tell: unknownPolicy }
  }
}

function planDelete(volume: Volume, inProcess: readonly InProcessProvisioner[]): Reclaim {
  const maker = annotationOf(volume, PROVISIONED_BY)
  if (maker) {
    const isKnown = inProcess.some(({ name }) => name === maker)
    return isKnown || !maker.startsWith(IN_TREE_PREFIX)
      ? leftTo(maker)
      : { is: 'impossible', tell: deleterUnknown(maker) }
  }
  const { csi } = volume.spec ?? {}
  if (csi) return leftTo(csi.driver)
  const owner = inProcess.find((one) => one.owns(volume))
  return owner ? leftTo(owner.name) : { is: 'impossible', tell: noDeleter(volume.metadata.name ?? '') }
}

const leftTo = (provisioner: string): Reclaim => ({
  is: 'left',
  to: provisioner,
  because: `its claim is gone: waiting for the provisioner "${provisioner}" to delete it`,
})
