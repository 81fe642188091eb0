// How far the growth of a claim has come, as its status says it, and what each step writes there. Every step is one
// strategic-merge patch, so that whatever else is in the status, and whoever else writes there, stays untouched.
//
//   started     alloc = target   ControllerResizeInProgress   Resizing
//   refused     alloc = target   ControllerResizeInfeasible   Resizing, ControllerResizeError
//   failed                       (as it was)                  + ControllerResizeError
//   node's turn                  NodeResizePending            + FileSystemResizePending, - ControllerResizeError
//   left to it                   –                            FileSystemResizePending
//   grown       cap = size       –                            –
//   cancelled   alloc –          –                            –
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

/** The reason of a ControllerResizeError of ours: the driver was not asked, because there is no room. */
export const INSUFFICIENT_STORAGE = 'NotEnoughFreeStorage'

/** A patch of a claim through /status; metadata.annotations are taken along there. */
export interface StatusPatch {
  readonly metadata?: object
  readonly status: object
}

export interface Failure {
  readonly message: string
  readonly reason?: string
}

/** Before the driver is asked for a size it was not asked for before. */
export const started = (target: string, now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResources: { storage: target },
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [
      condition('Resizing', {}, now),
      ...without('FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'),
    ],
  },
})

/** Before it is asked again for what it refused: from here on nobody knows what it did. */
export const restarted = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: {
    allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    conditions: [condition('Resizing', {}, now)],
  },
})

/** It will not do this size. `target` where the claim does not say yet what was wanted. */
export const infeasible = (failure: Failure, now: string, target?: string): StatusPatch => ({
  status: {
    ...(target === undefined ? {} : { allocatedResources: { storage: target } }),
    allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
    conditions: [
      ...(target === undefined
        ? []
        : [condition('Resizing', {}, now), ...without('FileSystemResizePending', 'NodeResizeError')]),
      condition('ControllerResizeError', failure, now),
    ],
  },
})

/** It did nothing, and may do it another time. */
export const failed = (failure: Failure, now: string): StatusPatch => ({
  status: { conditions: [condition('ControllerResizeError', failure, now)] },
})

/** The device has grown; the file system on it has not. */
export const nodePending = (now: string): StatusPatch => ({
  status: {
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
    conditions: [
      condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now),
      ...without('ControllerResizeError'),
    ],
  },
})

/**
 * As older resizers say it, without a size that was asked for: nothing was, and nodes of every kind take the volume's.
 */
export const nodePendingWithoutState = (now: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: null } },
  status: { conditions: [condition('FileSystemResizePending', { message: WAITING_FOR_NODE }, now)] },
})

export const completed = (size: string): StatusPatch => ({
  metadata: { annotations: { [NODE_EXPANSION_NOT_REQUIRED]: 'true' } },
  status: { capacity: { storage: size }, ...NO_RESIZE },
})

export const completedOnNode = (size: string): StatusPatch => ({
  status: { capacity: { storage: size }, ...NO_RESIZE },
})

export const cancelled = (): StatusPatch => ({ status: { allocatedResources: { storage: null }, ...NO_RESIZE } })

export const nodeStarted = (): StatusPatch => ({
  status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
})

export const nodeInfeasible = (failure: Failure, now: string): StatusPatch => ({
  status: {
    allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' },
    conditions: [condition('NodeResizeError', failure, now)],
  },
})

export const nodeFailed = (failure: Failure, now: string): StatusPatch => ({
  status: { conditions: [condition('NodeResizeError', failure, now)] },
})

export const failureText = (because: string): string => `failed to expand pvc with ${because}`

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

const without = (...types: readonly ResizeCondition[]) => types.map((type) => ({ type, $patch: 'delete' }))

const NO_RESIZE = { allocatedResourceStatuses: { storage: null }, conditions: without(...RESIZE_CONDITIONS) }

/** Times on conditions have whole seconds. */
export const timeText = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19)}Z`
