// Builds the strategic merge patches with which each step of an expansion updates the claim's status, and reads the resize
// state and conditions from the status.
// In the table, an empty cell means that the patch does not change the field, and "removed" that it removes the value, or
// all resize conditions. `completed` and `completedOnNode` also set the capacity. Some patches also
// change the annotation NODE_EXPANSION_NOT_REQUIRED.
//
//   step                      allocatedResources  allocatedResourceStatuses    conditions
//   started                   target              ControllerResizeInProgress   Resizing only
//   restarted                                     ControllerResizeInProgress   + Resizing
//   infeasible                                    ControllerResizeInfeasible   + ControllerResizeError
//   infeasible with target    target              ControllerResizeInfeasible   Resizing and ControllerResizeError only
//   failed                                                                     + ControllerResizeError
//   nodePending               size, if passed     NodeResizePending            + FileSystemResizePending, - ControllerResizeError
//   nodePendingWithoutState                                                    + FileSystemResizePending
//   nodeStarted                                   NodeResizeInProgress
//   nodeInfeasible                                NodeResizeInfeasible         + NodeResizeError
//   nodeFailed                                                                 + NodeResizeError
//   completed                 size, if passed     removed                      removed
//   completedOnNode                               removed                      removed
//   cancelled                 removed             removed                      removed
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { NODE_EXPANSION_NOT_REQUIRED } from './names.ts'

type Claim = Readonly<PersistentVolumeClaim>

export const RESIZE_CONDITIONS = [
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
] as const
export type ResizeCondition = (typeof RESIZE_CONDITIONS)[number]

/** Reason of a ControllerResizeError if the driver was not called because its free capacity is too small. */
export const INSUFFICIENT_STORAGE = 'NotEnoughFreeStorage'

/** A patch of a claim's status subresource, which also accepts metadata.annotations. */
export interface StatusPatch {
  readonly metadata?: object
  readonly status: object
}

export interface Failure {
  readonly message: string
  readonly reason?: string
}

/** Written before the first call for a size. */
export const startedPatch = (target: string, now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResources: { storage: target },
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [
      condition('Resizing', {}, now),
      ...conditionRemovals('FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'),
    ],
  },
})

/** Written before another call for a size that was infeasible, because the actual size is unknown during the call. */
export const restartedPatch = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [condition('Resizing', {}, now)],
  },
})

/** Written after the driver rejected the size. Pass `target` unless allocatedResources already has it. */
export const infeasiblePatch = (failure: Failure, now: string, target?: string): StatusPatch => ({
  status: {
    ...(target === undefined ? {} : { allocatedResources: { storage: target } }),
    allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    conditions: [
      ...(target === undefined
        ? []
        : [condition('Resizing', {}, now), ...conditionRemovals('FileSystemResizePending', 'NodeResizeError')]),
      condition('ControllerResizeError', failure, now),
    ],
  },
})

/** Written after a failed call that will be repeated. */
export const failedPatch = (failure: Failure, now: string): StatusPatch => ({
  status: { conditions: [condition('ControllerResizeError', failure, now)] },
})

/** Written after the volume is expanded, while its file system is not. `allocatedSize` sets allocatedResources. */
export const nodePendingPatch = (now: string, allocatedSize?: string): StatusPatch => ({
  status: {
    ...(allocatedSize === undefined ? {} : { allocatedResources: { storage: allocatedSize } }),
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
    conditions: [
      condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now),
      ...conditionRemovals('ControllerResizeError'),
    ],
  },
})

/** The patch of older resizers, without allocatedResources. */
export const nodePendingWithoutStatePatch = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: { conditions: [condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now)] },
})

export const completedPatch = (size: string, allocatedSize?: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: 'true' } },
  status: {
    capacity: { storage: size },
    ...(allocatedSize === undefined ? {} : { allocatedResources: { storage: allocatedSize } }),
    ...NO_RESIZE,
  },
})

export const completedOnNodePatch = (size: string): StatusPatch => ({
  status: { capacity: { storage: size }, ...NO_RESIZE },
})

export const cancelledPatch = (): StatusPatch => ({ status: { allocatedResources: { storage: null }, ...NO_RESIZE } })

export const nodeStartedPatch = (): StatusPatch => ({
  status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
})

export const nodeInfeasiblePatch = (failure: Failure, now: string): StatusPatch => ({
  status: {
    allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' },
    conditions: [condition('NodeResizeError', failure, now)],
  },
})

export const nodeFailedPatch = (failure: Failure, now: string): StatusPatch => ({
  status: { conditions: [condition('NodeResizeError', failure, now)] },
})

export const failureMessage = (reason: string): string => `failed to expand pvc with ${reason}`

export const resizeStateOf = ({ status }: Claim): string | undefined => status?.allocatedResourceStatuses?.storage

export const resizeCondition = ({ status }: Claim, type: ResizeCondition) =>
  status?.conditions?.find((candidate) => candidate.type === type && candidate.status === 'True')

const WAITING_FOR_NODE = 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.'

const condition = (type: ResizeCondition, { message = '', reason = '' }: Partial<Failure>, now: string) => ({
  type,
  status: 'True',
  lastProbeTime: now,
  lastTransitionTime: now,
  reason,
  message,
})

const conditionRemovals = (...types: readonly ResizeCondition[]) => types.map((type) => ({ type, $patch: 'delete' }))

const NO_RESIZE = { allocatedResourceStatuses: { storage: null }, conditions: conditionRemovals(...RESIZE_CONDITIONS) }

/** Formats a time for conditions, which have a precision of one second. */
export const formatTime = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19)}Z`
