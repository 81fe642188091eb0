// The document's words for how far a change of iops or throughput has come.
export const IO_PROGRESS = {
  /** Seen, and cannot start. */
  pending: 'ControllerModifyVolumePending',
  /** The driver is asked, again and again if need be. */
  inProgress: 'ControllerModifyVolumeInProgress',
  /** The driver refused; the volume works as before. */
  failed: 'ControllerModifyVolumeFailed',
} as const

export type IoProgressName = (typeof IO_PROGRESS)[keyof typeof IO_PROGRESS]
