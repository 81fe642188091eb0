// The row of a claim: the fields that tables, filters and actions use.
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from '../../../api/kinds/claim/claim-schema.ts'
import type { ConsoleObject } from '../../protocol.ts'
import { parseBytes } from '../logic/quantity.ts'
import { intern, type NamedRow, timeOf } from './row.ts'

export interface ClaimRow extends NamedRow {
  readonly namespace: string
  readonly phase: string
  readonly className: string | undefined
  /** The current attributes class of the volume. */
  readonly attributesClass: string | undefined
  /** The attributes class that is requested, if it differs. */
  readonly targetAttributesClass: string | undefined
  readonly volumeName: string | undefined
  /** The node for which the scheduler has requested the volume. Remains set after the claim is bound. */
  readonly selectedNode: string | undefined
  /** In the format of the API, for previews and commands. */
  readonly request: string | undefined
  readonly capacity: string | undefined
  readonly requestBytes: number | undefined
  readonly capacityBytes: number | undefined
  readonly isBlock: boolean
  /** The state of an unfinished expansion, such as ControllerResizeInProgress. */
  readonly resizeStatus: string | undefined
  /** Pending, InProgress or Infeasible. */
  readonly modifyStatus: string | undefined
  /** The first problem of the volume, such as `Degraded`. */
  readonly health: string | undefined
}

export function projectClaim(object: ConsoleObject): ClaimRow {
  const { metadata, spec = {}, status = {} } = object as unknown as PersistentVolumeClaim
  const target = status.modifyVolumeStatus?.targetVolumeAttributesClassName || spec.volumeAttributesClassName
  const current = status.currentVolumeAttributesClassName
  const request = spec.resources?.requests?.storage
  const capacity = status.capacity?.storage
  return {
    uid: object.metadata.uid,
    name: object.metadata.name,
    namespace: intern(object.metadata.namespace ?? ''),
    createdMs: timeOf(metadata.creationTimestamp),
    deletedMs: timeOf(metadata.deletionTimestamp),
    phase: intern(status.phase ?? 'Pending'),
    className: intern(spec.storageClassName ?? undefined),
    attributesClass: intern(current ?? undefined),
    targetAttributesClass: target && target !== current ? intern(target) : undefined,
    volumeName: spec.volumeName || undefined,
    selectedNode: intern(metadata.annotations?.['volume.kubernetes.io/selected-node']),
    request: intern(request),
    capacity: intern(capacity),
    requestBytes: parseBytes(request),
    capacityBytes: parseBytes(capacity),
    isBlock: spec.volumeMode === 'Block',
    resizeStatus: intern(status.allocatedResourceStatuses?.storage),
    modifyStatus: intern(status.modifyVolumeStatus?.status),
    health: intern(healthOf(status)),
  }
}

const healthOf = ({ healthStatus }: PersistentVolumeClaimStatus): string | undefined =>
  healthStatus?.healthConditions?.[0]?.status
