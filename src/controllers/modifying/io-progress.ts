// Values of status.allocatedResourceStatuses for iops and throughput.
export const IO_PROGRESS = {
  /** The modification cannot start yet. */
  pending: 'ControllerModifyVolumePending',
  /** The driver is being called, with retries. */
  inProgress: 'ControllerModifyVolumeInProgress',
  /** The modification was rejected and the volume keeps its attributes. */
  failed: 'ControllerModifyVolumeFailed',
} as const

export type IoProgressName = (typeof IO_PROGRESS)[keyof typeof IO_PROGRESS]
