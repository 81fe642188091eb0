// Parses a CSIStorageCapacity object into a report: storage class, nodes and capacity. A quantity that cannot be parsed is
// unknown, and no volume fits an unknown capacity. A selector that cannot be parsed selects no nodes.

import type { CSIStorageCapacity } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { quantityToBytes } from '../../../../api/quantity.ts'
import { type LabelSelector, labelSelectorFromObject } from '../../../../api/selectors.ts'
import { keyOfObject, type ObjectKey } from '../../../../client/index.ts'

export interface CapacityReport {
  readonly key: ObjectKey
  readonly className: string
  /** Identifies the report's nodes. Reports with equal segments are about the same nodes. */
  readonly segment: string
  readonly topology: Topology
  readonly capacityBytes: bigint | undefined
  readonly maximumBytes: bigint | undefined
  /** The size of the largest volume that can be created: the maximum volume size if it is set, otherwise the capacity. */
  readonly limitBytes: bigint | undefined
  /** Updated by reservations.ts, and shared by all versions of the object. */
  readonly ledger: Ledger
}

/** The reservations on a report. They are part of the report because they are read for every node. */
export interface Ledger {
  /** Bytes reserved for volumes that are not yet included in the report. */
  reservedBytes: bigint
  /** Size of the smallest volume that could not be created on these nodes. Reset by the next report, or after a minute. */
  failedBytes: bigint | undefined
}

type Topology =
  | { readonly is: 'no nodes' }
  | { readonly is: 'all nodes' }
  /** The nodes that have one of these lists of values for these label keys. */
  | { readonly is: 'label values'; readonly keys: readonly string[]; readonly values: readonly (readonly string[])[] }
  /** Any other selector. */
  | { readonly is: 'selector'; readonly selector: LabelSelector }

export function parseCapacityReport(
  object: Readonly<CSIStorageCapacity>,
  ledger: Ledger = { reservedBytes: 0n, failedBytes: undefined },
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

/** A selector that expands to more lists of label values is matched for each node. */
const LABEL_VALUES_MAX = 64

function topologyOf(nodeTopology: CSIStorageCapacity['nodeTopology']): Topology {
  if (!nodeTopology) return { is: 'no nodes' }
  let selector: LabelSelector
  try {
    selector = labelSelectorFromObject(nodeTopology)
  } catch {
    return { is: 'no nodes' } // the selector is invalid
  }
  const { requirements } = selector
  if (requirements.length === 0) return { is: 'all nodes' }
  const keys = requirements.map(({ key }) => key)
  const hasOnlyValues =
    requirements.every(({ operator }) => operator === '=' || operator === 'in') && new Set(keys).size === keys.length
  const count = requirements.reduce((product, { values }) => product * values.length, 1)
  if (!hasOnlyValues || count > LABEL_VALUES_MAX) return { is: 'selector', selector }
  let values: readonly (readonly string[])[] = [[]]
  for (const requirement of requirements) {
    values = values.flatMap((prefix) => requirement.values.map((value) => [...prefix, value]))
  }
  return { is: 'label values', keys, values }
}

const segmentOf = (topology: Topology): string =>
  topology.is === 'label values'
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
