// A CSIStorageCapacity object as the scheduler reads it: which class, which nodes, how much. An amount or selector that
// cannot be parsed counts as unknown, and unknown capacity is never enough.

import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { quantityToBytes } from '../../../../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject } from '../../../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../../../client/index.ts'

export interface CapacityReport {
  readonly key: ObjectKey
  readonly className: string
  /** Identifies the nodes the report is about: equal for reports about the same nodes. */
  readonly segment: string
  readonly topology: Topology
  readonly capacityBytes: bigint | undefined
  readonly maximumBytes: bigint | undefined
  /** The largest single volume: the maximum volume size if stated, else the capacity. */
  readonly limitBytes: bigint | undefined
  /** Written by reservations.ts; shared by all versions of the object. */
  readonly ledger: Ledger
}

/** Part of the report because it is read for every node. */
export interface Ledger {
  /** Bytes reserved for volumes that the report does not count yet. */
  reserved: bigint
  /** The smallest volume that the driver refused here since its last report. */
  refused: bigint | undefined
}

export type Topology =
  | { readonly is: 'no nodes' }
  | { readonly is: 'all nodes' }
  /** Nodes that have one of these lists of values for these label keys. */
  | { readonly is: 'places'; readonly keys: readonly string[]; readonly values: readonly (readonly string[])[] }
  /** Any other selector. */
  | { readonly is: 'selector'; readonly selector: LabelSelector }

export function capacityReport(
  object: Readonly<CSIStorageCapacity>,
  ledger: Ledger = { reserved: 0n, refused: undefined },
): CapacityReport {
  const topology = topologyOf(object.nodeTopology)
  const capacityBytes = bytesOf(object.capacity)
  const maximumBytes = bytesOf(object.maximumVolumeSize)
  return {
    key: keyOfObject(object),
    className: object.storageClassName,
    segment: segmentOf(topology),
    topology,
    capacityBytes,
    maximumBytes,
    limitBytes: object.maximumVolumeSize === undefined ? capacityBytes : maximumBytes,
    ledger,
  }
}

/** A selector that expands to more places is matched node by node. */
const PLACES_MAX = 64

function topologyOf(nodeTopology: CSIStorageCapacity['nodeTopology']): Topology {
  if (!nodeTopology) return { is: 'no nodes' }
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(nodeTopology)
  } catch {
    return { is: 'no nodes' } // invalid; another API server may have accepted it
  }
  const { requirements } = selector
  if (requirements.length === 0) return { is: 'all nodes' }
  const keys = requirements.map(({ key }) => key)
  const arePlaces =
    requirements.every(({ operator }) => operator === '=' || operator === 'in') && new Set(keys).size === keys.length
  const count = requirements.reduce((product, { values }) => product * values.length, 1)
  if (!arePlaces || count > PLACES_MAX) return { is: 'selector', selector }
  let values: readonly (readonly string[])[] = [[]]
  for (const one of requirements) values = values.flatMap((head) => one.values.map((value) => [...head, value]))
  return { is: 'places', keys, values }
}

const segmentOf = (topology: Topology): string =>
  topology.is === 'places'
    ? JSON.stringify([topology.keys, topology.values])
    : topology.is === 'selector'
      ? JSON.stringify(topology.selector.requirements)
      : topology.is

function bytesOf(amount: string | undefined): bigint | undefined {
  if (amount === undefined) return undefined
  try {
    return quantityToBytes(amount)
  } catch {
    return undefined
  }
}
