// The patches of each step: class, iops and throughput, conditions and undo record in one write of the claim's status,
// so that no reader sees half a step. Pure; undefined if the status already has the values.

import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from '../../api/kinds/claim/claim-schema.ts'
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { formatTime } from '../../volumes/resize-status.ts'
import { IO_PROGRESS, type IoProgressName } from './io-progress.ts'
import type { ModifyCall } from './plan-modification.ts'
import { type IoStatus, MODIFY_VOLUME_ERROR, MODIFYING_VOLUME, type Situation } from './situation.ts'
import { type Attributes, type IoName, sameAmount, type Target, targetText } from './target.ts'
import { ATTRIBUTES, confirmedText, UNDO, type Undo, undoText } from './undo.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface StatusPatch {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly status: Readonly<Record<string, unknown>>
}

type ModifyTarget = Pick<ModifyCall, 'target' | 'attributes' | 'replaced'>

/** The parts of a claim's request that a call changes. */
export interface Concern {
  readonly className: string | undefined
  readonly io: readonly IoName[]
}

export function concernOf({ inEffect, classStatus, io }: Situation, { target, replaced }: ModifyTarget): Concern {
  const isAboutClass =
    target.className !== undefined && (target.className !== inEffect.className || classStatus !== undefined)
  return {
    className: isAboutClass ? target.className : undefined,
    io: IO_RESOURCES.filter((name) => {
      if (io[name].status !== undefined) return true
      if (target[name] !== undefined) return !sameAmount(target[name], inEffect[name])
      return replaced.includes(name)
    }),
  }
}

interface Step {
  readonly claim: Claim
  readonly situation: Situation
  readonly target: Target
  readonly concern: Concern
  readonly nowMs: number
}

/** Before the driver is called. Conditional on the claim's resourceVersion. */
export function beginPatch({ claim, situation, target, concern, nowMs }: Step, undo: Undo): StatusPatch | undefined {
  const { className, io } = concern
  const { classStatus, classTarget } = situation
  const isClassSet = className === undefined || (classStatus === 'InProgress' && classTarget === className)
  const isIoSet = io.every(
    (name) =>
      situation.io[name].status === IO_PROGRESS.inProgress &&
      (target[name] === undefined || sameAmount(situation.io[name].allocated, target[name])),
  )
  const isUndoSet = undoText(undo) === undoText(situation.undo ?? {})
  if (isClassSet && isIoSet && isUndoSet) return undefined
  const amounts = Object.fromEntries(io.flatMap((name) => (target[name] === undefined ? [] : [[name, target[name]]])))
  return {
    metadata: {
      uid: claim.metadata.uid,
      resourceVersion: claim.metadata.resourceVersion,
      ...(isUndoSet ? {} : { annotations: { [UNDO]: undoText(undo) } }),
    },
    status: {
      ...(className === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: className, status: 'InProgress' } }),
      ...(Object.keys(amounts).length > 0 ? { allocatedResources: amounts } : {}),
      ...ioStatuses(io, IO_PROGRESS.inProgress),
      ...(className === undefined && io.length === 0
        ? {}
        : { conditions: [modifying(claim, `${to(target)} is in progress.`, nowMs)] }),
    },
  }
}

/** After the driver has confirmed. Unconditional: an edit during the call does not change its result. */
export function finishPatch({ claim, situation, target, concern }: Step, asked: ModifyTarget): StatusPatch {
  const { inEffect } = situation
  const provided = providedBy(asked)
  const begun = IO_RESOURCES.filter((name) => concern.io.includes(name) || situation.io[name].allocated !== undefined)
  const held = begun.map((name): [string, string | null] => [name, target[name] ?? null])
  const isClassNew = target.className !== undefined && target.className !== inEffect.className
  return {
    metadata: settledMetadata(claim),
    status: {
      modifyVolumeStatus: null,
      ...(isClassNew ? { currentVolumeAttributesClassName: target.className } : {}),
      ...(held.length > 0 ? { allocatedResources: Object.fromEntries(held) } : {}),
      ...(Object.keys(provided).length > 0 ? { capacity: provided } : {}),
      ...ioStatuses(concern.io, null),
      conditions: NO_CONDITIONS,
    },
  }
}

/** Clears a modification that did not change the volume. */
export function dropPatch(claim: Claim, { inEffect, wanted, io }: Situation): StatusPatch {
  const begun = IO_RESOURCES.filter((name) => io[name].status !== undefined || io[name].allocated !== undefined)
  const amount = (name: IoName) => (wanted[name] === undefined ? null : (inEffect[name] ?? null))
  const held = begun.map((name): [string, string | null] => [name, amount(name)])
  return {
    metadata: settledMetadata(claim),
    status: {
      modifyVolumeStatus: null,
      ...(held.length > 0 ? { allocatedResources: Object.fromEntries(held) } : {}),
      ...ioStatuses(begun, null),
      conditions: NO_CONDITIONS,
    },
  }
}

/** The modification cannot start. Keeps target and conditions of an earlier one. */
export function holdPatch(
  claim: Claim,
  { inEffect, classStatus, io }: Situation,
  target: Target,
): StatusPatch | undefined {
  const isClass = target.className !== inEffect.className && classStatus !== 'Pending'
  const waiting = IO_RESOURCES.filter(
    (name) =>
      target[name] !== undefined &&
      !sameAmount(target[name], inEffect[name]) &&
      io[name].status !== IO_PROGRESS.pending,
  )
  if (!isClass && waiting.length === 0) return undefined
  const { uid, resourceVersion } = claim.metadata
  return {
    metadata: { uid, resourceVersion },
    status: {
      ...(isClass ? { modifyVolumeStatus: { status: 'Pending' } } : {}),
      ...ioStatuses(waiting, IO_PROGRESS.pending),
    },
  }
}

/** The modification is impossible; the driver was not called. */
export function refusePatch(
  { claim, situation, target, nowMs }: Omit<Step, 'concern'>,
  io: readonly IoName[],
  because: string,
): StatusPatch | undefined {
  const { className } = target
  const isReported = conditionOf(claim, MODIFY_VOLUME_ERROR)?.message === because
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
        condition(claim, { type: MODIFY_VOLUME_ERROR, reason: 'InvalidArgument', message: because }, nowMs),
      ],
    },
  }
}

export type FailureMeaning =
  /** The driver does not support these attributes; the volume is unchanged. */
  | 'infeasible'
  /** Rejected while the volume is in use. */
  | 'inUse'
  /** Another final error. */
  | 'final'
  /** The driver may still be modifying the volume, or have finished. */
  | 'uncertain'

export interface Failed {
  readonly meaning: FailureMeaning
  readonly reason: string
  readonly message: string
  /** The undo record after this response. */
  readonly undo: Undo
}

/** After a failed call. */
export function failurePatch(step: Step, { meaning, reason, message, undo }: Failed): StatusPatch | undefined {
  const { claim, situation, target, concern, nowMs } = step
  const { classStatus } = situation
  const classWord = CLASS_STATUSES[meaning]
  const ioWord = IO_STATUSES[meaning]
  const words = meaning === 'uncertain' ? 'is still in progress.' : 'failed. Waiting for retry.'
  const isAboutNothing = concern.className === undefined && concern.io.length === 0
  const text = isAboutNothing ? `Cancelling the modification ${words}` : `${to(target)} ${words}`
  const known = conditionOf(claim, MODIFY_VOLUME_ERROR)
  const isUndoSet = undoText(undo) === undoText(situation.undo ?? {})
  const isReported =
    conditionOf(claim, MODIFYING_VOLUME)?.message === text &&
    known?.message === message &&
    known.reason === reason &&
    (concern.className === undefined || classStatus === classWord) &&
    concern.io.every((name) => situation.io[name].status === ioWord)
  if (isReported && isUndoSet) return undefined
  return {
    metadata: { uid: claim.metadata.uid, ...(isUndoSet ? {} : { annotations: { [UNDO]: undoText(undo) } }) },
    status: {
      ...(concern.className === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: concern.className, status: classWord } }),
      ...ioStatuses(concern.io, ioWord),
      conditions: [
        modifying(claim, text, nowMs),
        condition(claim, { type: MODIFY_VOLUME_ERROR, reason, message }, nowMs),
      ],
    },
  }
}

const CLASS_STATUSES: Readonly<Record<FailureMeaning, 'Pending' | 'InProgress' | 'Infeasible'>> = {
  infeasible: 'Infeasible',
  inUse: 'Pending',
  final: 'InProgress',
  uncertain: 'InProgress',
}

const IO_STATUSES: Readonly<Record<FailureMeaning, IoProgressName>> = {
  infeasible: IO_PROGRESS.failed,
  inUse: IO_PROGRESS.pending,
  final: IO_PROGRESS.inProgress,
  uncertain: IO_PROGRESS.inProgress,
}

/** The patch of the volume after the driver has confirmed; undefined if it has the values already. */
export function volumePatch(
  volume: Readonly<PersistentVolume>,
  asked: ModifyTarget,
  known: Attributes,
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> | undefined {
  const { metadata, spec = {} } = volume
  const { target, attributes } = asked
  const className = target.className ?? spec.volumeAttributesClassName
  const confirmed = confirmedText(className, known, attributes)
  const provided = Object.entries(providedBy(asked)).filter(([name, amount]) =>
    amount === null ? spec.capacity?.[name] !== undefined : !sameAmount(spec.capacity?.[name], amount),
  )
  const annotations = { [ATTRIBUTES]: confirmed, ...more }
  const isAnnotated = Object.entries(annotations).every(([name, text]) => metadata.annotations?.[name] === text)
  if (isAnnotated && className === spec.volumeAttributesClassName && provided.length === 0) return undefined
  return {
    metadata: { uid: metadata.uid, ...(isAnnotated ? {} : { annotations }) },
    spec: {
      ...(className === spec.volumeAttributesClassName ? {} : { volumeAttributesClassName: className }),
      ...(provided.length > 0 ? { capacity: Object.fromEntries(provided) } : {}),
    },
  }
}

/** The claim's own amounts in effect; null for an amount that the class replaces. */
function providedBy({ target, replaced }: ModifyTarget): Record<string, string | null> {
  const provided: Record<string, string | null> = {}
  for (const name of IO_RESOURCES) {
    if (target[name] !== undefined) provided[name] = target[name]
    else if (replaced.includes(name)) provided[name] = null
  }
  return provided
}

function settledMetadata(claim: Claim) {
  const hasUndo = claim.metadata.annotations?.[UNDO] !== undefined
  return { uid: claim.metadata.uid, ...(hasUndo ? { annotations: { [UNDO]: null } } : {}) }
}

const ioStatuses = (names: readonly IoName[], status: IoStatus | null) =>
  names.length === 0 ? {} : { allocatedResourceStatuses: Object.fromEntries(names.map((name) => [name, status])) }

const NO_CONDITIONS = [MODIFYING_VOLUME, MODIFY_VOLUME_ERROR].map((type) => ({ type, $patch: 'delete' }))

const to = (target: Target): string => `Modifying volume to "${targetText(target)}"`

const modifying = (claim: Claim, message: string, nowMs: number) =>
  condition(claim, { type: MODIFYING_VOLUME, message }, nowMs)

const conditionOf = ({ status }: Claim, type: string): Readonly<PersistentVolumeClaimCondition> | undefined =>
  status?.conditions?.find((one) => one.type === type)

/** Conditions are True or absent, never False. A new message alone is no transition. */
function condition(claim: Claim, fields: { type: string; reason?: string; message: string }, nowMs: number) {
  const now = formatTime(nowMs)
  const before = conditionOf(claim, fields.type)
  const isSame = before?.status === 'True' && (before.reason ?? '') === (fields.reason ?? '')
  const since = isSame ? (before.lastTransitionTime ?? now) : now
  return { ...fields, status: 'True', lastProbeTime: now, lastTransitionTime: since }
}
