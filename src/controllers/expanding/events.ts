// The events of expansion. Reasons, and messages that external-resizer has too, are in its wording.
import type { EventDetails } from '../../runtime/index.ts'

export const resizing = (volumeName: string): EventDetails => ({
  type: 'Normal',
  reason: 'Resizing',
  message: `External resizer is resizing volume ${volumeName}`,
})

export const resized: EventDetails = {
  type: 'Normal',
  reason: 'VolumeResizeSuccessful',
  message: 'Resize volume succeeded',
}

export const needsNode: EventDetails = {
  type: 'Normal',
  reason: 'FileSystemResizeRequired',
  message: 'Require file system resize of volume on node',
}

export const resizeFailed = (message: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeResizeFailed',
  message,
})

export const failedText = (volumeName: string, driverName: string, because: string): string =>
  `resize volume "${volumeName}" by resizer "${driverName}" failed: ${because}`

export const inUseText = (claimKey: string, driverName: string): string =>
  `Unable to expand ${claimKey} because CSI driver ${driverName} only supports offline expansion and volume is currently in-use`

export const resizeCancelled = (from: string, volumeName: string, size: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeResizeCancelled',
  message: `Expansion of volume ${volumeName} to ${from} was cancelled: the claim requests no more than its current size ${size}.`,
})

export interface Lowering {
  readonly claimKey: string
  readonly from: string
  readonly to: string
  readonly has: string
  /** The size that quota still charges, where the server keeps spec.allocatedResources. */
  readonly charged?: string
}

export const requestLowered = ({ claimKey, from, to, has, charged }: Lowering): EventDetails => ({
  type: 'Normal',
  reason: LOWERED_REASON,
  message:
    `The storage requested by claim ${claimKey} was lowered from ${from} to ${to}; its volume has ${has} and does not shrink.` +
    (charged === undefined ? '' : ` Quota continues to charge ${charged}.`),
})

export const LOWERED_REASON = 'StorageRequestLowered'
