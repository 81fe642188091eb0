// Records actions of users and faults that make an otherwise wrong state acceptable.
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import type { FakeState } from '../../csi/fake/index.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'
import type { System } from '../engine/system.ts'
import { assetName, assetOf, type ObjectOf, type View } from '../engine/view.ts'
import { DRIVERS, type DriverName, MEMORY_PLUGIN_ASSETS } from '../plan/catalog.ts'
import { IMPORT_PREFIX } from '../workload/volume-actions.ts'

export interface Exemptions {
  /** Whether the driver lost this volume with its state. */
  isLost(asset: string): boolean
  /**
   * Whether the volume is not a leak: a user deleted the PersistentVolume while its policy was Retain or it had no finalizer for
   * deletion, or the volume was imported and has never had a PersistentVolume.
   */
  isAbandoned(asset: string): boolean
  /**
   * Whether a user changed the policy or released the volume only after the controller had correctly called DeleteVolume, so
   * that its storage may have been deleted anyway.
   */
  mayHaveBeenDeleted(volume: ObjectOf<'volume'>): boolean
  /** Whether the last expansion was for another claim and did not succeed: the volume may be larger than recorded. */
  mayHaveGrownBefore(asset: string, claimUid: string): boolean
  /** Whether a feature gate was off at some time: state that depends on it may be incomplete. */
  readonly hadGatesOff: boolean
  /** Detects lost driver state; call before checking. */
  update(): void
}

/**
 * `isRequestedByProcess`: whether a process, and not a user, requested a volume's deletion. `isDropped`: whether the volume's
 * object was deleted without its driver, because its node is lost.
 */
export function createExemptions(
  system: System,
  view: View,
  isRequestedByProcess: (volume: ObjectOf<'volume'>) => boolean,
  isDropped: (asset: string) => boolean = () => false,
): Exemptions {
  const states = new Map<DriverName, FakeState>()
  const lostAssets = new Set<string>()
  /** Assets that have had a PersistentVolume. */
  const knownAssets = new Set<string>()
  const abandonedAssets = new Set<string>()
  /** Uids of volumes that were being deleted without a finalizer for the deletion of their storage. */
  const unprotectedUids = new Set<string>()
  /** Assets whose deletion was requested, with the uid of their claim. */
  const claimUidByDeletedAsset = new Map<string, string | undefined>()
  /** Assets with an unanswered expansion, with the uid of the claim it was for. */
  const claimUidByExpandingAsset = new Map<string, string | undefined>()
  let hadGatesOff = false

  view.onCommit((changes) => {
    update()
    for (const change of changes) {
      if (change.of !== 'volume') continue
      const { old, next } = change
      const asset = assetOf(next ?? old)
      if (!asset) continue
      if (next) {
        knownAssets.add(asset)
        abandonedAssets.delete(asset)
        if (next.metadata.deletionTimestamp && !mustDeleteStorage(next)) unprotectedUids.add(next.metadata.uid ?? '')
      } else if (old && !isRequestedByProcess(old)) {
        if (unprotectedUids.has(old.metadata.uid ?? '') || !mustDeleteStorage(old)) abandonedAssets.add(asset)
      }
    }
  })
  system.onCall(({ driver, method, volume: handle, outcome }, phase) => {
    update()
    if (method === 'ControllerExpandVolume') {
      const asset = `${driver}^${handle}`
      if (phase === 'begins')
        claimUidByExpandingAsset.set(asset, view.volumesOf(driver, handle)[0]?.spec?.claimRef?.uid)
      else if (outcome === 'OK') claimUidByExpandingAsset.delete(asset)
    }
    if (phase === 'begins' && method === 'DeleteVolume') recordDeletion(driver, handle)
  })
  system.onPluginDelete((_process, volumeName) => recordDeletion(MEMORY_PLUGIN_ASSETS, volumeName))

  function recordDeletion(driver: string, handle: string): void {
    for (const { spec } of view.volumesOf(driver, handle))
      if (spec?.persistentVolumeReclaimPolicy === 'Delete')
        claimUidByDeletedAsset.set(assetName(driver, handle), spec.claimRef?.uid)
  }

  function update(): void {
    for (const name of DRIVERS) {
      const driver = system.drivers.get(name)
      if (!driver) continue
      const [previousState, currentState] = [states.get(name), driver.state()]
      if (previousState === currentState) continue
      for (const id of Object.keys(previousState?.volumes ?? {})) lostAssets.add(`${name}^${id}`)
      states.set(name, currentState)
    }
    hadGatesOff ||= FEATURE_GATES.some((gate) => !system.gates.enabled(gate))
  }

  return {
    update,
    get hadGatesOff() {
      return hadGatesOff
    },
    mayHaveBeenDeleted(volume) {
      const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
      const asset = assetOf(volume) ?? ''
      const isFree = volume.status?.phase !== 'Bound'
      return (
        claimUidByDeletedAsset.has(asset) &&
        isFree &&
        (policy !== 'Delete' || claimRef?.uid !== claimUidByDeletedAsset.get(asset))
      )
    },
    mayHaveGrownBefore: (asset, claimUid) =>
      claimUidByExpandingAsset.has(asset) && claimUidByExpandingAsset.get(asset) !== claimUid,
    isLost: (asset) => lostAssets.has(asset),
    isAbandoned: (asset) =>
      abandonedAssets.has(asset) ||
      isDropped(asset) ||
      (asset.includes(`^${IMPORT_PREFIX}`) && !knownAssets.has(asset)),
  }
}

/** Whether the policy and a finalizer require that a process deletes the storage before the object is removed. */
const mustDeleteStorage = ({ metadata: { finalizers = [] }, spec }: ObjectOf<'volume'>): boolean =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' &&
  (finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER) || finalizers.includes(IN_PROCESS_PROVISIONER_FINALIZER))
