// Plans the write for an item's object after GetCapacity. Pure: existing object and reported capacity in, write out.

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { formatQuantity, isQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import type { Item } from './items.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL } from './managed-by.ts'
import type { Report } from './report.ts'

/** Namespace, labels and owner of a producer's objects. */
export interface Marks {
  readonly namespace: string
  readonly driverName: string
  readonly managedBy: string
  readonly owner: OwnerReference | undefined
}

export type ObjectAction =
  | { readonly do: 'create'; readonly object: CSIStorageCapacity }
  | { readonly do: 'update'; readonly object: Readonly<CSIStorageCapacity>; readonly body: object }
  /** The driver has no capacity there, and no object exists. */
  | { readonly do: 'leaveOut' }
  | { readonly do: 'keep' }

export function planObject(
  item: Item,
  present: Readonly<CSIStorageCapacity> | undefined,
  report: Report,
  marks: Marks,
): ObjectAction {
  if (present) {
    if (isAsReported(present, report, marks)) return { do: 'keep' }
    return { do: 'update', object: present, body: changesTo(present, report, marks) }
  }
  if (report.availableBytes === 0n) return { do: 'leaveOut' } // the scheduler treats a missing object as no capacity
  return { do: 'create', object: newObject(item, report, marks) }
}

/** Whether capacity, labels and owner of the object are up to date. */
export function isAsReported(object: Readonly<CSIStorageCapacity>, report: Report, { owner }: Marks): boolean {
  return (
    bytesOf(object.capacity) === report.availableBytes &&
    bytesOf(object.maximumVolumeSize) === report.maximumBytes &&
    (!owner || isOwned(object, owner))
  )
}

function newObject({ segment, storageClass }: Item, report: Report, marks: Marks): CSIStorageCapacity {
  const { namespace, driverName, managedBy, owner } = marks
  const isEverywhere = Object.keys(segment.labels).length === 0
  return {
    metadata: {
      generateName: 'csisc-',
      namespace,
      labels: { [DRIVER_NAME_LABEL]: driverName, [MANAGED_BY_LABEL]: managedBy },
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
    storageClassName: storageClass.metadata.name ?? '',
    nodeTopology: isEverywhere ? {} : { matchLabels: { ...segment.labels } },
    capacity: quantityOf(report.availableBytes),
    ...(report.maximumBytes === undefined ? {} : { maximumVolumeSize: quantityOf(report.maximumBytes) }),
  }
}

/** A merge patch, conditional on uid and resourceVersion. */
function changesTo({ metadata }: Readonly<CSIStorageCapacity>, report: Report, { owner }: Marks): object {
  const { uid, resourceVersion, ownerReferences = [] } = metadata
  const isMissing = owner && !ownerReferences.some((one) => one.uid === owner.uid)
  return {
    metadata: {
      uid,
      resourceVersion,
      ...(isMissing ? { ownerReferences: [...ownerReferences, besides(owner, ownerReferences)] } : {}),
    },
    capacity: quantityOf(report.availableBytes),
    maximumVolumeSize: report.maximumBytes === undefined ? null : quantityOf(report.maximumBytes),
  }
}

/** Only one owner may be the controller; an existing one is kept. */
function besides(owner: OwnerReference, others: readonly OwnerReference[]): OwnerReference {
  if (!others.some(({ controller }) => controller)) return owner
  const { controller: _, ...plain } = owner
  return plain
}

const isOwned = ({ metadata }: Readonly<CSIStorageCapacity>, owner: OwnerReference): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.uid)

const quantityOf = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))

const bytesOf = (quantity: string | number | undefined): bigint | undefined =>
  isQuantity(quantity) ? quantityToBytes(quantity) : undefined
