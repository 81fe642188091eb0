// The events that an expansion records on its claim, and StorageRequestLowered also on the volume. Those that external-resizer
// also records have its reasons.
import type { EventDetails } from '../../runtime/index.ts'

export const resizeStarted = (volumeName: string): EventDetails => ({
  type: 'Normal',
  reason: 'Resizing',
  message: `External resizer is resizing volume ${volumeName}`,
})

export const resizeSucceeded: EventDetails = {
  type: 'Normal',
  reason: 'VolumeResizeSuccessful',
  message: 'Resize volume succeeded',
}

export const nodeResizeRequired: EventDetails = {
  type: 'Normal',
  reason: 'FileSystemResizeRequired',
  message: 'Require file system resize of volume on node',
}

export const resizeFailed = (message: string): EventDetails => ({
  type: 'Warning',
  reason: 'VolumeResizeFailed',
  message,
})

export const resizeFailedMessage = (volumeName: string, driverName: string, message: string): string =>
  `resize volume "${volumeName}" by resizer "${driverName}" failed: ${message}`

export const inUseMessage = (claimKey: string, driverName: string): string =>
  `Unable to expand ${claimKey} because CSI driver ${driverName} only supports offline expansion and volume is currently in-use`

export const resizeCancelled = (cancelledSize: string, volumeName: string, size: string): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeResizeCancelled',
  message: `Expansion of volume ${volumeName} to ${cancelledSize} was cancelled: the claim requests no more than its current size ${size}.`,
})

export interface LoweredRequest {
  readonly claimKey: string
  readonly previousSize: string
  readonly requestedSize: string
  readonly currentSize: string
  /** The size that quota still charges, if the server sets spec.allocatedResources. */
  readonly chargedSize?: string
}

export const requestLowered = ({
  claimKey,
  previousSize,
  requestedSize,
  currentSize,
  chargedSize,
}: LoweredRequest): EventDetails => ({
  type: 'Normal',
  reason: LOWERED_REASON,
  message:
    `The storage requested by claim ${claimKey} was lowered from ${previousSize} to ${requestedSize}; its volume has ${currentSize} and does not shrink.` +
    (chargedSize === undefined ? '' : ` Quota continues to charge ${chargedSize}.`),
})

export const LOWERED_REASON = 'StorageRequestLowered'
