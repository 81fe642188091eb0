// What users and faults have done that excuses something later. Each excuse is as narrow as it can be: it names one thing
// in a driver, or a time.
import { FEATURE_GATES } from '../../api/feature-gates.ts'
import type { FakeState } from '../../csi/fake/index.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'
import type { System } from '../engine/system.ts'
import { assetOf, type ObjectOf, type View } from '../engine/view.ts'
import { DRIVERS, type DriverName } from '../plan/catalog.ts'
import { IMPORTED } from '../workload/volume-actions.ts'

export interface Exemptions {
  /** The storage forgot it, behind everybody's back. */
  isLost(asset: string): boolean
  /**
   * It is users's: they deleted the volume while its policy said that the data stays or nothing held it, or it was there
   * before us and no volume has ever stood for it.
   */
  isGivenUp(asset: string): boolean
  /**
   * Its deletion was asked for while its volume's policy said so and the claim was gone, and only then users changed their
   * minds: kept it, or gave it to whoever wants it. It may be gone all the same.
   */
  isKeptTooLate(volume: ObjectOf<'volume'>): boolean
  /** Asked to grow for another claim than this, which was let go of before anybody heard an answer: it may be larger. */
  mayHaveGrownBefore(asset: string, claimUid: string): boolean
  /** Features were switched off at some time: what relies on them was not done then. */
  readonly hadGatesOff: boolean
  /** Looks whether anything was lost; called before anything is judged. */
  update(): void
}

/** `isRequestedByProcess`: whether some process, and not a person, asked for a volume's deletion. */
export function createExemptions(
  system: System,
  view: View,
  isRequestedByProcess: (volume: ObjectOf<'volume'>) => boolean,
): Exemptions {
  const states = new Map<DriverName, FakeState>()
  const lost = new Set<string>()
  /** Things that a volume has stood for, and of these those that were given up since. */
  const stood = new Set<string>()
  const givenUp = new Set<string>()
  /** By uid: volumes that were going while nothing held them for their storage to be deleted. */
  const unprotected = new Set<string>()
  /** Things whose deletion was asked for, and the claim that had each. */
  const condemned = new Map<string, string | undefined>()
  /** Things that were asked to grow and did not say that they have, and the claim that each did it for. */
  const unheard = new Map<string, string | undefined>()
  let hadGatesOff = false

  view.onCommit((changes) => {
    update()
    for (const change of changes) {
      if (change.of !== 'volume') continue
      const { old, next } = change
      const asset = assetOf(next ?? old)
      if (!asset) continue
      if (next) {
        stood.add(asset)
        givenUp.delete(asset)
        if (next.metadata.deletionTimestamp && !isHeldToDelete(next)) unprotected.add(next.metadata.uid ?? '')
      } else if (old && !isRequestedByProcess(old)) {
        if (unprotected.has(old.metadata.uid ?? '') || !isHeldToDelete(old)) givenUp.add(asset)
      }
    }
  })
  system.onCall(({ driver, method, volume: handle, outcome }, phase) => {
    update()
    if (method === 'ControllerExpandVolume') {
      const asset = `${driver}^${handle}`
      if (phase === 'begins') unheard.set(asset, view.volumesOf(driver, handle)[0]?.spec?.claimRef?.uid)
      else if (outcome === 'OK') unheard.delete(asset)
    }
    if (phase !== 'begins' || method !== 'DeleteVolume') return
    for (const { spec } of view.volumesOf(driver, handle))
      if (spec?.persistentVolumeReclaimPolicy === 'Delete') condemned.set(`${driver}^${handle}`, spec.claimRef?.uid)
  })

  function update(): void {
    for (const name of DRIVERS) {
      const driver = system.drivers.get(name)
      if (!driver) continue
      const [before, now] = [states.get(name), driver.state()]
      if (before === now) continue
      for (const id of Object.keys(before?.volumes ?? {})) lost.add(`${name}^${id}`)
      states.set(name, now)
    }
    hadGatesOff ||= FEATURE_GATES.some((gate) => !system.gates.enabled(gate))
  }

  return {
    update,
    get hadGatesOff() {
      return hadGatesOff
    },
    isKeptTooLate(volume) {
      const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
      const asset = assetOf(volume) ?? ''
      const isFree = volume.status?.phase !== 'Bound'
      return condemned.has(asset) && isFree && (policy !== 'Delete' || claimRef?.uid !== condemned.get(asset))
    },
    mayHaveGrownBefore: (asset, claimUid) => unheard.has(asset) && unheard.get(asset) !== claimUid,
    isLost: (asset) => lost.has(asset),
    isGivenUp: (asset) => givenUp.has(asset) || (asset.includes(`^${IMPORTED}`) && !stood.has(asset)),
  }
}

const isHeldToDelete = ({ metadata: { finalizers = [] }, spec }: ObjectOf<'volume'>): boolean =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' &&
  (finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER) || finalizers.includes(IN_PROCESS_PROVISIONER_FINALIZER))
