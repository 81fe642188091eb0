// A CSIStorageCapacity object as the scheduler reads it: which class, which nodes, how much. What it cannot make sense
// of (an amount that is none, a selector that is none) counts as unknown, and unknown is never enough.

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject } from '../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'

export interface CapacityReport {
  readonly key: ObjectKey
  readonly className: string
  /** Which nodes it is about; equal texts mean equal nodes. */
  readonly segment: string
  readonly reaches: Reach
  readonly capacityBytes: bigint | undefined
  readonly maximumBytes: bigint | undefined
  /** The largest single volume: the maximum where it is stated, else the capacity. */
  readonly limitBytes: bigint | undefined
  /** What reservations.ts keeps about it; the same for every report of the object. */
  readonly ledger: Ledger
}

/** Stands in the report itself, since it is asked about every node. */
export interface Ledger {
  /** Bytes that are spoken for. */
  held: bigint
  /** The smallest volume the driver refused there since it last reported. */
  refused: bigint | undefined
}

export type Reach =
  | { readonly is: 'nobody' }
  | { readonly is: 'everybody' }
  /** Nodes that carry one of these sets of values for these labels. */
  | { readonly is: 'places'; readonly keys: readonly string[]; readonly values: readonly (readonly string[])[] }
  /** Anything else a selector can say. */
  | { readonly is: 'selected'; readonly selector: LabelSelector }

export function capacityReport(
  object: Readonly<CSIStorageCapacity>,
  ledger: Ledger = { held: 0n, refused: undefined },
): CapacityReport {
  const reaches = reachOf(object.nodeTopology)
  const capacityBytes = bytesOf(object.capacity)
  const maximumBytes = bytesOf(object.maximumVolumeSize)
  return {
    key: keyOfObject(object),
    className: object.storageClassName,
    segment: segmentOf(reaches),
    reaches,
    capacityBytes,
    maximumBytes,
    limitBytes: object.maximumVolumeSize === undefined ? capacityBytes : maximumBytes,
    ledger,
  }
}

/** A selector that means more places than this is matched node by node instead. */
const PLACES_MAX = 64

function reachOf(topology: CSIStorageCapacity['nodeTopology']): Reach {
  if (!topology) return { is: 'nobody' }
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(topology)
  } catch {
    return { is: 'nobody' } // stored by a server that checks less than ours
  }
  const { requirements } = selector
  if (requirements.length === 0) return { is: 'everybody' }
  const keys = requirements.map(({ key }) => key)
  const arePlaces =
    requirements.every(({ operator }) => operator === '=' || operator === 'in') && new Set(keys).size === keys.length
  const count = requirements.reduce((product, { values }) => product * values.length, 1)
  if (!arePlaces || count > PLACES_MAX) return { is: 'selected', selector }
  let values: readonly (readonly string[])[] = [[]]
  for (const one of requirements) values = values.flatMap((head) => one.values.map((value) => [...head, value]))
  return { is: 'places', keys, values }
}

const segmentOf = (reach: Reach): string =>
  reach.is === 'places'
    ? JSON.stringify([reach.keys, reach.values])
    : reach.is === 'selected'
      ? JSON.stringify(reach.selector.requirements)
      : reach.is

function bytesOf(amount: string | undefined): bigint | undefined {
  if (amount === undefined) return undefined
  try {
    return quantityToBytes(amount)
  } catch {
    return undefined
  }
}
