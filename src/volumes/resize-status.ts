// The progress of an expansion in the status of its claim, and the patch that each step writes there. Each is a
// strategic merge patch, so that fields of other writers stay untouched.
//
//   patch                     allocatedResources  allocatedResourceStatuses    conditions
//   started                   target              ControllerResizeInProgress   Resizing
//   infeasible                target              ControllerResizeInfeasible   Resizing, ControllerResizeError
//   failed                                        (unchanged)                  + ControllerResizeError
//   nodePending                                   NodeResizePending            + FileSystemResizePending, - ControllerResizeError
//   nodePendingWithoutState                       (unchanged)                  + FileSystemResizePending
//   completed                 (capacity = size)   –                            –
//   cancelled                 –                   –                            –
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

export type ResizeState =
  | 'ControllerResizeInProgress'
  | 'ControllerResizeInfeasible'
  | 'NodeResizePending'
  | 'NodeResizeInProgress'
  | 'NodeResizeInfeasible'

/** Reason of our own ControllerResizeError: the driver was not called, because its free capacity is too small. */
export const INSUFFICIENT_STORAGE = 'NotEnoughFreeStorage'

/** A patch of a claim through /status, which accepts metadata.annotations too. */
export interface StatusPatch {
  readonly metadata?: object
  readonly status: object
}

export interface Failure {
  readonly message: string
  readonly reason?: string
}

/** Before the first call for a size. */
export const startedPatch = (target: string, now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResources: { storage: target },
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [
      condition('Resizing', {}, now),
      ...removedConditions('FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'),
    ],
  },
})

/** Before another call for a size that was infeasible: until it returns, the actual size is unknown. */
export const restartedPatch = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [condition('Resizing', {}, now)],
  },
})

/** The driver rejected the size with a final error. `target` unless the claim already has it in allocatedResources. */
export const infeasiblePatch = (failure: Failure, now: string, target?: string): StatusPatch => ({
  status: {
    ...(target === undefined ? {} : { allocatedResources: { storage: target } }),
    allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    conditions: [
      ...(target === undefined
        ? []
        : [condition('Resizing', {}, now), ...removedConditions('FileSystemResizePending', 'NodeResizeError')]),
      condition('ControllerResizeError', failure, now),
    ],
  },
})

/** The call failed without effect and will be repeated. */
export const failedPatch = (failure: Failure, now: string): StatusPatch => ({
  status: { conditions: [condition('ControllerResizeError', failure, now)] },
})

/** The device is expanded, the file system on it is not. */
export const nodePendingPatch = (now: string): StatusPatch => ({
  status: {
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
    conditions: [
      condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now),
      ...removedConditions('ControllerResizeError'),
    ],
  },
})

/**
 * As older resizers write it, without allocatedResources. Kubelets of every version then expand to the volume's size.
 */
export const nodePendingWithoutStatePatch = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: { conditions: [condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now)] },
})

export const completedPatch = (size: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: 'true' } },
  status: { capacity: { storage: size }, ...NO_RESIZE },
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

export const failureMessage = (because: string): string => `failed to expand pvc with ${because}`

export const resizeStateOf = ({ status }: Claim): string | undefined => status?.allocatedResourceStatuses?.storage

export const resizeCondition = ({ status }: Claim, type: ResizeCondition) =>
  status?.conditions?.find((one) => one.type === type && one.status === 'True')

const WAITING_FOR_NODE = 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.'

const condition = (type: ResizeCondition, { message = '', reason = '' }: Partial<Failure>, now: string) => ({
  type,
  status: 'True',
  lastProbeTime: now,
  lastTransitionTime: now,
  reason,
  message,
})

const removedConditions = (...types: readonly ResizeCondition[]) => types.map((type) => ({ type, $patch: 'delete' }))

const NO_RESIZE = { allocatedResourceStatuses: { storage: null }, conditions: removedConditions(...RESIZE_CONDITIONS) }

/** Times on conditions have whole seconds. */
export const formatTime = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19)}Z`
