// The rows of volumes, attachments, classes and capacity reports.
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { ConsoleObject } from '../../protocol.ts'
import { parseBytes } from '../logic/quantity.ts'
import { intern, type NamedRow, timeOf } from './row.ts'

const namedRow = ({ metadata }: ConsoleObject): NamedRow => ({
  uid: metadata.uid,
  name: metadata.name,
  createdMs: timeOf(metadata.creationTimestamp as string | undefined),
  deletedMs: timeOf(metadata.deletionTimestamp as string | undefined),
})

/** The segment of a volume or a capacity report: a node is in it if its label of each key has one of the values. */
export type Segment = readonly { readonly key: string; readonly values: readonly string[] }[]

export interface VolumeRow extends NamedRow {
  readonly phase: string
  readonly driver: string | undefined
  readonly className: string | undefined
  readonly capacityBytes: number | undefined
  readonly reclaimPolicy: string
  /** namespace/name of the claim. */
  readonly claim: string | undefined
  /** Alternatives, of which a node must match one. Undefined if every node can reach the volume. */
  readonly segments: readonly Segment[] | undefined
}

export function projectVolume(object: ConsoleObject): VolumeRow {
  const { spec, status } = object as unknown as PersistentVolume
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms
  return {
    ...namedRow(object),
    phase: intern(status?.phase ?? 'Pending'),
    driver: intern(spec?.csi?.driver),
    className: intern(spec?.storageClassName || undefined),
    capacityBytes: parseBytes(spec?.capacity?.storage),
    reclaimPolicy: intern(spec?.persistentVolumeReclaimPolicy ?? 'Retain'),
    claim: spec?.claimRef ? `${spec.claimRef.namespace}/${spec.claimRef.name}` : undefined,
    segments: terms?.map(({ matchExpressions = [] }) =>
      matchExpressions
        .filter(({ operator }) => operator === 'In')
        .map(({ key, values = [] }) => ({ key: intern(key), values: values.map((value) => intern(value)) })),
    ),
  }
}

export interface ClassRow extends NamedRow {
  readonly driver: string
  readonly isDefault: boolean
  readonly allowsExpansion: boolean
  readonly reclaimPolicy: string
  readonly waitsForConsumer: boolean
}

export function projectClass(object: ConsoleObject): ClassRow {
  const { metadata, provisioner, allowVolumeExpansion, reclaimPolicy, volumeBindingMode } =
    object as unknown as StorageClass
  return {
    ...namedRow(object),
    driver: provisioner ?? '',
    isDefault: metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true',
    allowsExpansion: allowVolumeExpansion === true,
    reclaimPolicy: reclaimPolicy ?? 'Delete',
    waitsForConsumer: volumeBindingMode === 'WaitForFirstConsumer',
  }
}

export interface AttributesClassRow extends NamedRow {
  readonly driver: string
  readonly parameters: Readonly<Record<string, string>>
}

export function projectAttributesClass(object: ConsoleObject): AttributesClassRow {
  const { driverName, parameters } = object as unknown as VolumeAttributesClass
  return { ...namedRow(object), driver: driverName ?? '', parameters: parameters ?? {} }
}

export interface CapacityRow extends NamedRow {
  readonly namespace: string
  readonly className: string
  /** Undefined if no node can reach the storage; empty if all nodes can. */
  readonly segment: Segment | undefined
  readonly freeBytes: number | undefined
  readonly largestBytes: number | undefined
}

export function projectCapacity(object: ConsoleObject): CapacityRow {
  const { nodeTopology, storageClassName, capacity, maximumVolumeSize } = object as unknown as CSIStorageCapacity
  const labels = Object.entries(nodeTopology?.matchLabels ?? {}).map(([key, value]) => ({ key, values: [value] }))
  const expressions = (nodeTopology?.matchExpressions ?? [])
    .filter(({ operator }) => operator === 'In')
    .map(({ key, values = [] }) => ({ key, values }))
  return {
    ...namedRow(object),
    namespace: object.metadata.namespace ?? '',
    className: storageClassName ?? '',
    segment: nodeTopology ? [...labels, ...expressions] : undefined,
    freeBytes: parseBytes(capacity),
    largestBytes: parseBytes(maximumVolumeSize),
  }
}

export interface AttachmentRow extends NamedRow {
  readonly driver: string
  readonly node: string
  readonly volumeName: string | undefined
  readonly isAttached: boolean
  readonly error: string | undefined
}

export function projectAttachment(object: ConsoleObject): AttachmentRow {
  const { spec, status } = object as unknown as VolumeAttachment
  return {
    ...namedRow(object),
    driver: intern(spec?.attacher ?? ''),
    node: intern(spec?.nodeName ?? ''),
    volumeName: spec?.source?.persistentVolumeName ?? undefined,
    isAttached: status?.attached === true,
    error: status?.attachError?.message ?? status?.detachError?.message,
  }
}
