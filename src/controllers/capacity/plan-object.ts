// Plans the write of an item's object from the existing object and the capacity that the driver reports. Pure.

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { formatQuantity, isQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import type { Report } from './get-capacity.ts'
import type { Item } from './items.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL } from './managed-by.ts'

/** Namespace, labels and owner of the objects that a producer creates. */
export interface ObjectTemplate {
  readonly namespace: string
  readonly driverName: string
  readonly managedBy: string
  readonly owner: OwnerReference | undefined
}

export type ObjectAction =
  | { readonly do: 'create'; readonly object: CSIStorageCapacity }
  | { readonly do: 'update'; readonly object: Readonly<CSIStorageCapacity>; readonly body: object }
  /** The driver reports no capacity and no object exists, so none is created. */
  | { readonly do: 'omit' }
  | { readonly do: 'keep' }

export function planObject(
  item: Item,
  existing: Readonly<CSIStorageCapacity> | undefined,
  report: Report,
  template: ObjectTemplate,
): ObjectAction {
  if (existing) {
    if (isUpToDate(existing, report, template)) return { do: 'keep' }
    return { do: 'update', object: existing, body: buildPatch(existing, report, template) }
  }
  if (report.availableBytes === 0n) return { do: 'omit' } // the scheduler treats a missing object as no capacity
  return { do: 'create', object: buildObject(item, report, template) }
}

/** Compares capacity, maximum volume size and owner. The labels always match, because the cache selects objects by them. */
export function isUpToDate(object: Readonly<CSIStorageCapacity>, report: Report, { owner }: ObjectTemplate): boolean {
  return (
    bytesOf(object.capacity) === report.availableBytes &&
    bytesOf(object.maximumVolumeSize) === report.maximumBytes &&
    (!owner || isOwned(object, owner))
  )
}

function buildObject({ segment, storageClass }: Item, report: Report, template: ObjectTemplate): CSIStorageCapacity {
  const { namespace, driverName, managedBy, owner } = template
  const containsAllNodes = Object.keys(segment.labels).length === 0
  return {
    metadata: {
      generateName: 'csisc-',
      namespace,
      labels: { [DRIVER_NAME_LABEL]: driverName, [MANAGED_BY_LABEL]: managedBy },
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
    storageClassName: storageClass.metadata.name ?? '',
    nodeTopology: containsAllNodes ? {} : { matchLabels: { ...segment.labels } },
    capacity: quantityOf(report.availableBytes),
    ...(report.maximumBytes === undefined ? {} : { maximumVolumeSize: quantityOf(report.maximumBytes) }),
  }
}

/** Returns a merge patch with the uid and resourceVersion as preconditions. */
function buildPatch({ metadata }: Readonly<CSIStorageCapacity>, report: Report, { owner }: ObjectTemplate): object {
  const { uid, resourceVersion, ownerReferences = [] } = metadata
  const isMissing = owner && !ownerReferences.some((reference) => reference.uid === owner.uid)
  return {
    metadata: {
      uid,
      resourceVersion,
      ...(isMissing ? { ownerReferences: [...ownerReferences, removeSecondController(owner, ownerReferences)] } : {}),
    },
    capacity: quantityOf(report.availableBytes),
    maximumVolumeSize: report.maximumBytes === undefined ? null : quantityOf(report.maximumBytes),
  }
}

/** Returns the owner without `controller` if another owner is the controller, because only one may be. */
function removeSecondController(owner: OwnerReference, existingOwners: readonly OwnerReference[]): OwnerReference {
  if (!existingOwners.some(({ controller }) => controller)) return owner
  const { controller: _, ...reference } = owner
  return reference
}

const isOwned = ({ metadata }: Readonly<CSIStorageCapacity>, owner: OwnerReference): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.uid)

const quantityOf = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))

const bytesOf = (quantity: string | number | undefined): bigint | undefined =>
  isQuantity(quantity) ? quantityToBytes(quantity) : undefined
