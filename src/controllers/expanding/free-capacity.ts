// Checks whether the free capacity allows a larger volume: if the driver opted in to capacity tracking, by the
// CSIStorageCapacity objects of the volume's class and topology. Unknown capacity counts as enough; the driver decides.
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'
import type { Cache } from '../../runtime/index.ts'

type Volume = Readonly<PersistentVolume>
type Capacity = Readonly<CSIStorageCapacity>

export interface FreeCapacityDeps {
  readonly driverName: string
  readonly csiDrivers: Cache<CSIDriver>
  readonly capacities: Cache<CSIStorageCapacity>
}

const BY_CLASS = 'expanding: class'
const classesOf = ({ storageClassName }: Capacity): string[] => [storageClassName]

export interface FreeCapacity {
  /** Why the volume cannot have this size, with the missing amount. Undefined: it fits, or is not known. */
  shortageFor(volume: Volume, target: string): string | undefined
}

export function createFreeCapacity({ driverName, csiDrivers, capacities }: FreeCapacityDeps): FreeCapacity {
  capacities.addIndex(BY_CLASS, classesOf)
  return {
    shortageFor(volume, target) {
      if (!csiDrivers.get({ name: driverName })?.spec.storageCapacity) return undefined
      return shortage(volume, target, capacities.byIndex(BY_CLASS, volumeClassName(volume)))
    },
  }
}

/** Of the topologies the volume is accessible from, the one with the most free capacity counts. */
export function shortage(volume: Volume, target: string, capacities: readonly Capacity[]): string | undefined {
  const moreBytes = quantityToBytes(target) - quantityToBytes(volume.spec?.capacity?.storage ?? '0')
  if (moreBytes <= 0n) return undefined
  const topologies = topologiesOf(volume)
  const free = capacities.filter((one) => topologies.some((labels) => covers(one, labels))).map(growthBytes)
  if (free.includes(undefined)) return undefined
  const most = free.sort((a, b) => (a! < b! ? 1 : -1))[0]
  if (most === undefined) return undefined
  if (moreBytes <= most) return undefined
  const text = (bytes: bigint) => formatQuantity(quantityFromBytes(bytes))
  return (
    `expanding to ${target} needs ${text(moreBytes)} more, and ${text(most)} are free in the volume's topology: ` +
    `${text(moreBytes - most)} are missing`
  )
}

/**
 * By how much a volume can grow at most. maximumVolumeSize limits new volumes, not the size of an existing one, but no
 * volume grows by more than that; 0 means that no new volume fits, which says nothing about growth. Undefined: not known.
 */
function growthBytes({ capacity, maximumVolumeSize }: Capacity): bigint | undefined {
  const free = capacity === undefined ? undefined : quantityToBytes(capacity)
  const most = quantityToBytes(maximumVolumeSize ?? '0')
  if (most === 0n) return free
  return free === undefined || most < free ? most : free
}

function covers({ nodeTopology }: Capacity, labels: Readonly<Record<string, string>> | undefined): boolean {
  if (!nodeTopology) return false
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(nodeTopology)
  } catch {
    return false // an invalid selector, stored by a server with weaker validation
  }
  if (selector.requirements.length === 0) return true
  return labels !== undefined && matchesLabels(selector, labels)
}

/** Combinations of label values in the volume's node affinity. Beyond this the check is skipped. */
const TOPOLOGIES_MAX = 64

/** As labels; undefined for a volume without node affinity, which only objects with an empty selector cover. */
function topologiesOf({ spec }: Volume): (Record<string, string> | undefined)[] {
  const required = spec?.nodeAffinity?.required
  if (!required) return [undefined]
  const topologies: Record<string, string>[] = []
  for (const { matchExpressions = [] } of required.nodeSelectorTerms) {
    let ofTerm: Record<string, string>[] = [{}]
    for (const { key, operator, values = [] } of matchExpressions) {
      if (operator !== 'In') continue
      ofTerm = ofTerm.flatMap((topology) => values.map((value) => ({ ...topology, [key]: value })))
      if (ofTerm.length > TOPOLOGIES_MAX) return []
    }
    topologies.push(...ofTerm)
  }
  return topologies
}
