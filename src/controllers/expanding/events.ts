// Everything that growing volumes tells people, in the words they know from other resizers.
import type { Happening } from '../../runtime/index.ts'

export const resizing = (volumeName: string): Happening => ({
  type: 'Normal',
  reason: 'Resizing',
  message: `External resizer is resizing volume ${volumeName}`,
})

export const resized: Happening = {
  type: 'Normal',
  reason: 'VolumeResizeSuccessful',
  message: 'Resize volume succeeded',
}

export const needsNode: Happening = {
  type: 'Normal',
  reason: 'FileSystemResizeRequired',
  message: 'Require file system resize of volume on node',
}

export const resizeFailed = (message: string): Happening => ({ type: 'Warning', reason: 'VolumeResizeFailed', message })

export const failedText = (volumeName: string, driverName: string, because: string): string =>
  `resize volume "${volumeName}" by resizer "${driverName}" failed: ${because}`

export const inUseText = (claimKey: string, driverName: string): string =>
  `Unable to expand ${claimKey} because CSI driver ${driverName} only supports offline expansion and volume is currently in-use`

export const cancelledTelling = (from: string, volumeName: string, size: string): Happening => ({
  type: 'Normal',
  reason: 'VolumeResizeCancelled',
  message: `The growth of volume ${volumeName} to ${from} was given up, as the claim asks for no more than the ${size} it has.`,
})

export interface Lowering {
  readonly claimKey: string
  readonly from: string
  readonly to: string
  readonly has: string
  /** What quota goes on charging, where the server keeps a mark. */
  readonly charged?: string
}

export const requestLowered = ({ claimKey, from, to, has, charged }: Lowering): Happening => ({
  type: 'Normal',
  reason: LOWERED_REASON,
  message:
    `The storage requested by claim ${claimKey} was lowered from ${from} to ${to}; its volume has ${has} and does not shrink.` +
    (charged === undefined ? '' : ` Quota goes on charging ${charged}.`),
})

export const LOWERED_REASON = 'StorageRequestLowered'
