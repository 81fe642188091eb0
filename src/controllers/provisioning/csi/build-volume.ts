// Converts the reply of CreateVolume to a new volume and checks it against the request. Pure.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import type { Volume } from '../../../csi/gen/csi_pb.js'
import type { NewVolume } from '../provisioner.ts'
import type { PreparedRequest } from './prepare-request.ts'

const IDENTITY_KEY = 'storage.kubernetes.io/csiProvisionerIdentity'

/** Returns the reason why the volume must be deleted, or undefined if it satisfies the request. */
export function findReplyProblem({ requiredBytes, source }: PreparedRequest, volume: Volume): string | undefined {
  // Zero means that the capacity is unknown, for example of a share on a file server.
  if (volume.capacityBytes !== 0n && volume.capacityBytes < requiredBytes) {
    return `created volume capacity ${volume.capacityBytes} less than requested capacity ${requiredBytes}`
  }
  if (source && volume.contentSource?.type.case === undefined) {
    return 'volume content source missing: the driver created an empty volume instead of a copy'
  }
  return undefined
}

export interface BuildOptions {
  readonly driverName: string
  /** Identity of the provisioner process, which is recorded in the volume. */
  readonly identity: string
  readonly hasTopology: boolean
  readonly controllerPublishReadOnly: boolean
  /** Whether the API server accepts iops and throughput in spec.capacity. Other servers reject the volume. */
  readonly reportsIo: boolean
}

export function buildNewVolume(
  claim: Readonly<PersistentVolumeClaim>,
  preparedRequest: PreparedRequest,
  volume: Volume,
  { driverName, identity, hasTopology, controllerPublishReadOnly, reportsIo }: BuildOptions,
): NewVolume {
  const { attributes, providedIo, fsType, secretRefs, requiredBytes } = preparedRequest
  const { accessModes = [], volumeMode = 'Filesystem' } = claim.spec ?? {}
  const isReadOnly = controllerPublishReadOnly && accessModes.length === 1 && accessModes[0] === 'ReadOnlyMany'
  const affinity = hasTopology ? nodeAffinityOf(volume) : undefined
  const storage = formatQuantity(quantityFromBytes(volume.capacityBytes || requiredBytes))
  const { iops, throughput } = reportsIo ? providedIo : {}
  return {
    spec: {
      capacity: { storage, ...(iops ? { iops } : {}), ...(throughput ? { throughput } : {}) },
      volumeMode,
      csi: {
        driver: driverName,
        volumeHandle: volume.volumeId,
        volumeAttributes: { [IDENTITY_KEY]: identity, ...volume.volumeContext },
        ...(volumeMode !== 'Block' && fsType ? { fsType } : {}),
        ...(isReadOnly ? { readOnly: true } : {}),
        ...secretRefs,
      },
      ...(affinity ? { nodeAffinity: affinity } : {}),
      ...(attributes.className ? { volumeAttributesClassName: attributes.className } : {}),
    },
  }
}

/** Returns a node affinity with one term per topology in the reply. Empty topologies are ignored. */
function nodeAffinityOf({ accessibleTopology }: Volume): PersistentVolumeSpec['nodeAffinity'] {
  const nodeSelectorTerms = accessibleTopology
    .map(({ segments }) => Object.entries(segments).sort(([a], [b]) => (a < b ? -1 : 1)))
    .filter((segments) => segments.length > 0)
    .map((segments) => ({
      matchExpressions: segments.map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
    }))
  return nodeSelectorTerms.length > 0 ? { required: { nodeSelectorTerms } } : undefined
}
