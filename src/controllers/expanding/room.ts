// Whether there is room for a larger volume, where that is known: the driver opted in to capacity tracking, and objects
// tell of the place the volume is in and of its class. Not known, or not for sure, counts as room: the driver decides.

import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'
import type { Cache } from '../../runtime/index.ts'

type Volume = Readonly<PersistentVolume>
type Capacity = Readonly<CSIStorageCapacity>

export interface RoomDeps {
  readonly driverName: string
  readonly csiDrivers: Cache<CSIDriver>
  readonly capacities: Cache<CSIStorageCapacity>
}

const BY_CLASS = 'expanding: class'
const classesOf = ({ storageClassName }: Capacity): string[] => [storageClassName]

export interface Room {
  /** Why the volume cannot have this size, with the amount that is missing. Undefined: it may. */
  shortageFor(volume: Volume, target: string): string | undefined
}

export function createRoom({ driverName, csiDrivers, capacities }: RoomDeps): Room {
  capacities.addIndex(BY_CLASS, classesOf)
  return {
    shortageFor(volume, target) {
      if (!csiDrivers.get({ name: driverName })?.spec.storageCapacity) return undefined
      return shortage(volume, target, capacities.byIndex(BY_CLASS, volumeClassName(volume)))
    },
  }
}

/** Of the places the volume is in, the roomiest counts. */
export function shortage(volume: Volume, target: string, capacities: readonly Capacity[]): string | undefined {
  const moreBytes = quantityToBytes(target) - quantityToBytes(volume.spec?.capacity?.storage ?? '0')
  if (moreBytes <= 0n) return undefined
  const places = placesOf(volume)
  const free = capacities.filter((one) => places.some((labels) => reaches(one, labels))).map(growthBytes)
  if (free.includes(undefined)) return undefined
  const most = free.sort((a, b) => (a! < b! ? 1 : -1))[0]
  if (most === undefined) return undefined
  if (moreBytes <= most) return undefined
  const text = (bytes: bigint) => formatQuantity(quantityFromBytes(bytes))
  return (
    `growing to ${target} takes ${text(moreBytes)} more, and ${text(most)} are free where the volume is: ` +
    `${text(moreBytes - most)} are missing`
  )
}

/**
 * How much a volume can grow at most. The largest new volume is no limit for the size of one that is there already, but
 * nothing grows by more than that; where it is 0, new ones do not fit at all, which says nothing. Undefined: not known.
 */
function growthBytes({ capacity, maximumVolumeSize }: Capacity): bigint | undefined {
  const free = capacity === undefined ? undefined : quantityToBytes(capacity)
  const most = quantityToBytes(maximumVolumeSize ?? '0')
  if (most === 0n) return free
  return free === undefined || most < free ? most : free
}

function reaches({ nodeTopology }: Capacity, labels: Readonly<Record<string, string>> | undefined): boolean {
  if (!nodeTopology) return false
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(nodeTopology)
  } catch {
    return false // stored by a server that checks less than ours
  }
  if (selector.requirements.length === 0) return true
  return labels !== undefined && matchesLabels(selector, labels)
}

/** A term may name several values for a label; a volume is in few places, and one that names more is left to its driver. */
const PLACES_MAX = 64

/** As labels; undefined for a volume that is everywhere, about which only objects for everywhere tell. */
function placesOf({ spec }: Volume): (Record<string, string> | undefined)[] {
  const required = spec?.nodeAffinity?.required
  if (!required) return [undefined]
  const places: Record<string, string>[] = []
  for (const { matchExpressions = [] } of required.nodeSelectorTerms) {
    let ofTerm: Record<string, string>[] = [{}]
    for (const { key, operator, values = [] } of matchExpressions) {
      if (operator !== 'In') continue
      ofTerm = ofTerm.flatMap((place) => values.map((value) => ({ ...place, [key]: value })))
      if (ofTerm.length > PLACES_MAX) return []
    }
    places.push(...ofTerm)
  }
  return places
}
