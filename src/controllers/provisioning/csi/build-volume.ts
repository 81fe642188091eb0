// The volume as the driver describes it, and whether that is what was asked for.
// Pure: the prepared request and the reply in; a new volume, or what is wrong with it, out.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import type { Volume } from '../../../csi/gen/csi_pb.js'
import type { NewVolume } from '../provisioner.ts'
import type { Prepared } from './prepare-request.ts'

const IDENTITY_KEY = 'storage.kubernetes.io/csiProvisionerIdentity'

/** What is wrong with a volume so that it must go again; nothing if it will do. */
export function replyProblem({ requiredBytes, source }: Prepared, volume: Volume): string | undefined {
  // Zero means that the driver does not know: a share on a file server has no size of its own.
  if (volume.capacityBytes !== 0n && volume.capacityBytes < requiredBytes) {
    return `created volume capacity ${volume.capacityBytes} less than requested capacity ${requiredBytes}`
  }
  if (source && volume.contentSource?.type.case === undefined) {
    return 'volume content source missing: the driver made an empty volume where a copy was asked for'
  }
  return undefined
}

export interface BuildOptions {
  readonly driverName: string
  /** Which run of which provisioner made it. */
  readonly identity: string
  readonly hasTopology: boolean
  readonly controllerPublishReadOnly: boolean
  /** Whether the server takes iops and throughput in a volume's capacity; others refuse the whole volume. */
  readonly reportsIo: boolean
}

export function buildVolume(
  claim: Readonly<PersistentVolumeClaim>,
  prepared: Prepared,
  volume: Volume,
  { driverName, identity, hasTopology, controllerPublishReadOnly, reportsIo }: BuildOptions,
): NewVolume {
  const { attributes, fsType, secretRefs, requiredBytes } = prepared
  const { accessModes = [], volumeMode = 'Filesystem' } = claim.spec ?? {}
  const isReadOnly = controllerPublishReadOnly && accessModes.length === 1 && accessModes[0] === 'ReadOnlyMany'
  const affinity = hasTopology ? nodeAffinityOf(volume) : undefined
  const storage = formatQuantity(quantityFromBytes(volume.capacityBytes || requiredBytes))
  const { iops, throughput } = reportsIo ? attributes : {}
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

/** From any one of the places the driver names. A place it says nothing about restricts nothing. */
function nodeAffinityOf({ accessibleTopology }: Volume): PersistentVolumeSpec['nodeAffinity'] {
  const nodeSelectorTerms = accessibleTopology
    .map(({ segments }) => Object.entries(segments).sort(([a], [b]) => (a < b ? -1 : 1)))
    .filter((segments) => segments.length > 0)
    .map((segments) => ({
      matchExpressions: segments.map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
    }))
  return nodeSelectorTerms.length > 0 ? { required: { nodeSelectorTerms } } : undefined
}
