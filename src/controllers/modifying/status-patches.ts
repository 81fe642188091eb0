// Builds the patch of the claim's status for each step, and the patch of a modified volume. Class, iops and throughput,
// conditions and undo record of the claim are written together, so that each step is atomic. Pure.

import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from '../../api/kinds/claim/claim-schema.ts'
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { formatTime } from '../../volumes/resize-status.ts'
import { ioAmountOf } from '../provisioning/csi/attributes.ts'
import { unrestoredMessage } from './events.ts'
import { IO_PROGRESS, type IoProgressName } from './io-progress.ts'
import type { ModifyCall } from './plan-modification.ts'
import { type IoStatus, MODIFY_VOLUME_ERROR, MODIFYING_VOLUME, type Situation, UNRESTORED_REASON } from './situation.ts'
import { type Attributes, formatTarget, type IoName, isSameAmount, type Target } from './target.ts'
import {
  ATTRIBUTES_ANNOTATION,
  serializeConfirmedAttributes,
  serializeUndo,
  UNDO_ANNOTATION,
  type Undo,
} from './undo.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface StatusPatch {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly status: Readonly<Record<string, unknown>>
}

type ModifyTarget = Pick<ModifyCall, 'target' | 'attributes' | 'replacedAmounts'>

/** The parts of a claim's request that a call changes. */
export interface ChangedParts {
  readonly className: string | undefined
  readonly io: readonly IoName[]
}

export function changedPartsOf(
  { currentTarget, classStatus, io }: Situation,
  { target, attributes, replacedAmounts }: ModifyTarget,
): ChangedParts {
  const changesClass =
    target.className !== undefined && (target.className !== currentTarget.className || classStatus !== undefined)
  return {
    className: changesClass ? target.className : undefined,
    io: IO_RESOURCES.filter((name) => {
      if (io[name].status !== undefined) return true
      if (target[name] !== undefined) return !isSameAmount(target[name], currentTarget[name])
      // A class may replace an amount with the same amount, for example one that an earlier class set.
      return replacedAmounts.includes(name) && !isSameAmount(ioAmountOf(name, attributes[name]!), currentTarget[name])
    }),
  }
}

interface PatchInput {
  readonly claim: Claim
  readonly situation: Situation
  readonly target: Target
  readonly changedParts: ChangedParts
  readonly nowMs: number
}

/** Returns the patch to write before the driver is called, with the claim's resourceVersion as a precondition. */
export function beginPatch(
  { claim, situation, target, changedParts, nowMs }: PatchInput,
  undo: Undo,
): StatusPatch | undefined {
  const { className, io } = changedParts
  const { classStatus, classTarget } = situation
  const isClassSet = className === undefined || (classStatus === 'InProgress' && classTarget === className)
  const isIoSet = io.every(
    (name) =>
      situation.io[name].status === IO_PROGRESS.inProgress &&
      (target[name] === undefined || isSameAmount(situation.io[name].allocatedAmount, target[name])),
  )
  const isUndoSet = serializeUndo(undo) === serializeUndo(situation.undo ?? {})
  if (isClassSet && isIoSet && isUndoSet) return undefined
  const amounts = Object.fromEntries(io.flatMap((name) => (target[name] === undefined ? [] : [[name, target[name]]])))
  return {
    metadata: {
      uid: claim.metadata.uid,
      resourceVersion: claim.metadata.resourceVersion,
      ...(isUndoSet ? {} : { annotations: { [UNDO_ANNOTATION]: serializeUndo(undo) } }),
    },
    status: {
      ...(className === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: className, status: 'InProgress' } }),
      ...(Object.keys(amounts).length > 0 ? { allocatedResources: amounts } : {}),
      ...ioStatuses(io, IO_PROGRESS.inProgress),
      ...(className === undefined && io.length === 0
        ? {}
        : { conditions: [modifyingCondition(claim, `${modifyingMessage(target)} is in progress.`, nowMs)] }),
    },
  }
}

/**
 * Returns the patch to write after the driver has confirmed the modification. The only precondition is the uid, because an
 * edit of the claim does not change the result.
 */
export function finishPatch(
  { claim, situation, target, changedParts, nowMs }: PatchInput,
  call: ModifyCall,
): StatusPatch {
  const { currentTarget, reportsIo } = situation
  const amounts = amountsAfterCall(call, (name) => reportsIo || hasReportedAmount(claim.status?.capacity, name))
  const startedNames = IO_RESOURCES.filter(
    (name) => changedParts.io.includes(name) || situation.io[name].allocatedAmount !== undefined,
  )
  const allocations = startedNames.map((name): [string, string | null] => [name, target[name] ?? null])
  const isClassNew = target.className !== undefined && target.className !== currentTarget.className
  return {
    metadata: metadataWithoutUndo(claim),
    status: {
      modifyVolumeStatus: null,
      ...(isClassNew ? { currentVolumeAttributesClassName: target.className } : {}),
      ...(allocations.length > 0 ? { allocatedResources: Object.fromEntries(allocations) } : {}),
      ...(Object.keys(amounts).length > 0 ? { capacity: amounts } : {}),
      ...ioStatuses(changedParts.io, null),
      conditions: finalConditions(claim, call.unrestoredAttributes, nowMs),
    },
  }
}

/** Returns the patch that clears a modification without a call. */
export function dropPatch(
  claim: Claim,
  { currentTarget, requestedTarget, io }: Situation,
  unrestoredAttributes: readonly string[],
  nowMs: number,
): StatusPatch {
  const startedNames = IO_RESOURCES.filter(
    (name) => io[name].status !== undefined || io[name].allocatedAmount !== undefined,
  )
  const amount = (name: IoName) => (requestedTarget[name] === undefined ? null : (currentTarget[name] ?? null))
  const allocations = startedNames.map((name): [string, string | null] => [name, amount(name)])
  return {
    metadata: metadataWithoutUndo(claim),
    status: {
      modifyVolumeStatus: null,
      ...(allocations.length > 0 ? { allocatedResources: Object.fromEntries(allocations) } : {}),
      ...ioStatuses(startedNames, null),
      conditions: finalConditions(claim, unrestoredAttributes, nowMs),
    },
  }
}

/** Returns the conditions after a modification: none, or an error with the attributes that were not restored. */
const finalConditions = (claim: Claim, unrestoredAttributes: readonly string[], nowMs: number) =>
  unrestoredAttributes.length === 0
    ? NO_CONDITIONS
    : [
        { type: MODIFYING_VOLUME, $patch: 'delete' },
        buildCondition(
          claim,
          { type: MODIFY_VOLUME_ERROR, reason: UNRESTORED_REASON, message: unrestoredMessage(unrestoredAttributes) },
          nowMs,
        ),
      ]

/** Returns the patch for a modification that cannot start. It keeps the target and the error of an earlier modification. */
export function holdPatch(
  { claim, situation, target, nowMs }: Omit<PatchInput, 'changedParts'>,
  pendingMessage: string,
): StatusPatch | undefined {
  const { currentTarget, classStatus, io } = situation
  const message = `${modifyingMessage(target)} is pending: ${pendingMessage}`
  const isReported = conditionOf(claim, MODIFYING_VOLUME)?.message === message
  const mustSetClassPending = target.className !== currentTarget.className && classStatus !== 'Pending'
  const waitingNames = IO_RESOURCES.filter(
    (name) =>
      target[name] !== undefined &&
      !isSameAmount(target[name], currentTarget[name]) &&
      io[name].status !== IO_PROGRESS.pending,
  )
  if (!mustSetClassPending && waitingNames.length === 0 && isReported) return undefined
  const { uid, resourceVersion } = claim.metadata
  return {
    metadata: { uid, resourceVersion },
    status: {
      ...(mustSetClassPending ? { modifyVolumeStatus: { status: 'Pending' } } : {}),
      ...ioStatuses(waitingNames, IO_PROGRESS.pending),
      conditions: [buildCondition(claim, { type: MODIFYING_VOLUME, reason: 'Pending', message }, nowMs)],
    },
  }
}

/** Returns the patch for an impossible modification, for which the driver is not called. */
export function rejectPatch(
  { claim, situation, target, nowMs }: Omit<PatchInput, 'changedParts'>,
  io: readonly IoName[],
  message: string,
): StatusPatch | undefined {
  const { className } = target
  const isReported = conditionOf(claim, MODIFY_VOLUME_ERROR)?.message === message
  const isClassSet =
    className === undefined || (situation.classStatus === 'Infeasible' && situation.classTarget === className)
  if (isReported && isClassSet && io.every((name) => situation.io[name].status === IO_PROGRESS.failed)) return undefined
  const { uid, resourceVersion } = claim.metadata
  return {
    metadata: { uid, resourceVersion },
    status: {
      ...(className === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: className, status: 'Infeasible' } }),
      ...ioStatuses(io, IO_PROGRESS.failed),
      conditions: [
        { type: MODIFYING_VOLUME, $patch: 'delete' },
        buildCondition(claim, { type: MODIFY_VOLUME_ERROR, reason: 'InvalidArgument', message }, nowMs),
      ],
    },
  }
}

export type FailureMeaning =
  /** The driver does not support these attributes; the volume is unchanged. */
  | 'infeasible'
  /** The driver rejects the attributes while the volume is in use. */
  | 'inUse'
  /** The driver does not have the volume. */
  | 'missing'
  /** Another final error. */
  | 'final'
  /** The driver may still be modifying the volume, or have finished. */
  | 'uncertain'

export interface CallFailure {
  readonly meaning: FailureMeaning
  readonly reason: string
  readonly message: string
  /** The undo record after this response. */
  readonly undo: Undo
}

/** Returns the patch to write after a failed call. */
export function failurePatch(
  input: PatchInput,
  { meaning, reason, message, undo }: CallFailure,
): StatusPatch | undefined {
  const { claim, situation, target, changedParts, nowMs } = input
  const { classStatus } = situation
  const newClassStatus = CLASS_STATUSES[meaning]
  const newIoStatus = IO_STATUSES[meaning]
  const suffix = meaning === 'uncertain' ? 'is still in progress.' : 'failed. Waiting for retry.'
  const hasNoChangedParts = changedParts.className === undefined && changedParts.io.length === 0
  const text = hasNoChangedParts ? `Cancelling the modification ${suffix}` : `${modifyingMessage(target)} ${suffix}`
  const currentError = conditionOf(claim, MODIFY_VOLUME_ERROR)
  const isUndoSet = serializeUndo(undo) === serializeUndo(situation.undo ?? {})
  const isReported =
    conditionOf(claim, MODIFYING_VOLUME)?.message === text &&
    currentError?.message === message &&
    currentError.reason === reason &&
    (changedParts.className === undefined || classStatus === newClassStatus) &&
    changedParts.io.every((name) => situation.io[name].status === newIoStatus)
  if (isReported && isUndoSet) return undefined
  return {
    metadata: {
      uid: claim.metadata.uid,
      ...(isUndoSet ? {} : { annotations: { [UNDO_ANNOTATION]: serializeUndo(undo) } }),
    },
    status: {
      ...(changedParts.className === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: changedParts.className, status: newClassStatus } }),
      ...ioStatuses(changedParts.io, newIoStatus),
      conditions: [
        modifyingCondition(claim, text, nowMs),
        buildCondition(claim, { type: MODIFY_VOLUME_ERROR, reason, message }, nowMs),
      ],
    },
  }
}

const CLASS_STATUSES: Readonly<Record<FailureMeaning, 'Pending' | 'InProgress' | 'Infeasible'>> = {
  infeasible: 'Infeasible',
  inUse: 'Pending',
  missing: 'InProgress',
  final: 'InProgress',
  uncertain: 'InProgress',
}

const IO_STATUSES: Readonly<Record<FailureMeaning, IoProgressName>> = {
  infeasible: IO_PROGRESS.failed,
  inUse: IO_PROGRESS.pending,
  missing: IO_PROGRESS.inProgress,
  final: IO_PROGRESS.inProgress,
  uncertain: IO_PROGRESS.inProgress,
}

/** Returns the patch of the volume after the driver has confirmed, or undefined if it already has the values. */
export function volumePatch(
  volume: Readonly<PersistentVolume>,
  call: ModifyTarget,
  reportsIo: boolean,
  currentAttributes: Attributes,
  otherAnnotations: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> | undefined {
  const { metadata, spec = {} } = volume
  const { target, attributes } = call
  const className = target.className ?? spec.volumeAttributesClassName
  const confirmedAttributes = serializeConfirmedAttributes(className, currentAttributes, attributes)
  const newAmounts = amountsAfterCall(call, (name) => reportsIo || hasReportedAmount(spec.capacity, name))
  const amounts = Object.entries(newAmounts).filter(([name, amount]) =>
    amount === null ? spec.capacity?.[name] !== undefined : !isSameAmount(spec.capacity?.[name], amount),
  )
  const annotations = { [ATTRIBUTES_ANNOTATION]: confirmedAttributes, ...otherAnnotations }
  const isAnnotated = Object.entries(annotations).every(([name, text]) => metadata.annotations?.[name] === text)
  if (isAnnotated && className === spec.volumeAttributesClassName && amounts.length === 0) return undefined
  return {
    metadata: { uid: metadata.uid, ...(isAnnotated ? {} : { annotations }) },
    spec: {
      ...(className === spec.volumeAttributesClassName ? {} : { volumeAttributesClassName: className }),
      ...(amounts.length > 0 ? { capacity: Object.fromEntries(amounts) } : {}),
    },
  }
}

/**
 * Returns the amounts in effect after the call: the claim's own, or else those of the class or a rollback. The value is null
 * if an amount of the claim was replaced and the new one is unknown.
 */
function amountsAfterCall(
  { target, attributes, replacedAmounts }: ModifyTarget,
  shouldReport: (name: IoName) => boolean,
): Record<string, string | null> {
  const amounts: Record<string, string | null> = {}
  for (const name of IO_RESOURCES) {
    const sentAmount = Object.hasOwn(attributes, name) && shouldReport(name) ? attributes[name] : undefined
    if (target[name] !== undefined) amounts[name] = target[name]
    else if (sentAmount !== undefined) amounts[name] = ioAmountOf(name, sentAmount) ?? null
    else if (replacedAmounts.includes(name)) amounts[name] = null
  }
  return amounts
}

/** Whether the amount was reported. A reported amount must stay correct even if VolumeProvisionedIO has since been disabled. */
const hasReportedAmount = (capacity: Readonly<Record<string, unknown>> | undefined, name: IoName): boolean =>
  capacity?.[name] !== undefined

function metadataWithoutUndo(claim: Claim) {
  const hasUndo = claim.metadata.annotations?.[UNDO_ANNOTATION] !== undefined
  return { uid: claim.metadata.uid, ...(hasUndo ? { annotations: { [UNDO_ANNOTATION]: null } } : {}) }
}

const ioStatuses = (names: readonly IoName[], status: IoStatus | null) =>
  names.length === 0 ? {} : { allocatedResourceStatuses: Object.fromEntries(names.map((name) => [name, status])) }

const NO_CONDITIONS = [MODIFYING_VOLUME, MODIFY_VOLUME_ERROR].map((type) => ({ type, $patch: 'delete' }))

const modifyingMessage = (target: Target): string => `Modifying volume to "${formatTarget(target)}"`

const modifyingCondition = (claim: Claim, message: string, nowMs: number) =>
  buildCondition(claim, { type: MODIFYING_VOLUME, message }, nowMs)

const conditionOf = ({ status }: Claim, type: string): Readonly<PersistentVolumeClaimCondition> | undefined =>
  status?.conditions?.find((condition) => condition.type === type)

/** Conditions are True or absent, never False. A new message alone does not change lastTransitionTime. */
function buildCondition(claim: Claim, fields: { type: string; reason?: string; message: string }, nowMs: number) {
  const time = formatTime(nowMs)
  const previousCondition = conditionOf(claim, fields.type)
  const isSame = previousCondition?.status === 'True' && (previousCondition.reason ?? '') === (fields.reason ?? '')
  const transitionTime = isSame ? (previousCondition.lastTransitionTime ?? time) : time
  return { ...fields, status: 'True', lastProbeTime: time, lastTransitionTime: transitionTime }
}
