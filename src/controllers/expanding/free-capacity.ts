// Checks whether the free capacity allows a larger volume, using the CSIStorageCapacity objects of the volume's class and
// topology. If the driver does not track capacity or the capacity is unknown, there is no shortage: the driver decides.
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
  /** Returns a message with the missing amount, or undefined if the size fits or the capacity is unknown. */
  shortageFor(volume: Volume, target: string): string | undefined
}

export function createFreeCapacity({ driverName, csiDrivers, capacities }: FreeCapacityDeps): FreeCapacity {
  capacities.addIndex(BY_CLASS, classesOf)
  return {
    shortageFor(volume, target) {
      if (!csiDrivers.get({ name: driverName })?.spec.storageCapacity) return undefined
      return explainShortage(volume, target, capacities.byIndex(BY_CLASS, volumeClassName(volume)))
    },
  }
}

/** Compares the growth with the largest free capacity of the topologies from which the volume is accessible. */
export function explainShortage(volume: Volume, target: string, capacities: readonly Capacity[]): string | undefined {
  const growthBytes = quantityToBytes(target) - quantityToBytes(volume.spec?.capacity?.storage ?? '0')
  if (growthBytes <= 0n) return undefined
  const topologies = topologiesOf(volume)
  const growths = capacities
    .filter((capacity) => topologies.some((labels) => covers(capacity, labels)))
    .map(maxGrowthBytes)
  if (growths.includes(undefined)) return undefined
  const [freeBytes] = growths.sort((a, b) => (a! < b! ? 1 : -1))
  if (freeBytes === undefined || growthBytes <= freeBytes) return undefined
  const formatBytes = (bytes: bigint) => formatQuantity(quantityFromBytes(bytes))
  return (
    `expanding to ${target} needs ${formatBytes(growthBytes)} more, but only ${formatBytes(freeBytes)} is free in the volume's ` +
    `topology (${formatBytes(growthBytes - freeBytes)} short)`
  )
}

/**
 * Returns the maximum growth of a volume, or undefined if it is unknown. maximumVolumeSize is the limit of a new volume,
 * and no existing volume can grow by more than that. The value 0 means that no new volume fits, but volumes may still grow.
 */
function maxGrowthBytes({ capacity, maximumVolumeSize }: Capacity): bigint | undefined {
  const freeBytes = capacity === undefined ? undefined : quantityToBytes(capacity)
  const maxBytes = quantityToBytes(maximumVolumeSize ?? '0')
  if (maxBytes === 0n) return freeBytes
  return freeBytes === undefined || maxBytes < freeBytes ? maxBytes : freeBytes
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

/** Maximum number of combinations of label values in the volume's node affinity. With more, the check is skipped. */
const TOPOLOGIES_MAX = 64

/** Returns the labels of each topology; undefined for a volume without node affinity, which only an empty selector covers. */
function topologiesOf({ spec }: Volume): (Record<string, string> | undefined)[] {
  const requiredTerms = spec?.nodeAffinity?.required
  if (!requiredTerms) return [undefined]
  const topologies: Record<string, string>[] = []
  for (const { matchExpressions = [] } of requiredTerms.nodeSelectorTerms) {
    let termTopologies: Record<string, string>[] = [{}]
    for (const { key, operator, values = [] } of matchExpressions) {
      if (operator !== 'In') continue
      termTopologies = termTopologies.flatMap((topology) => values.map((value) => ({ ...topology, [key]: value })))
      if (termTopologies.length > TOPOLOGIES_MAX) return []
    }
    topologies.push(...termTopologies)
  }
  return topologies
}
