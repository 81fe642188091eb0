// A claim, its volume and the classes they name, read as one picture: what is wanted, what is in effect, what was begun.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { keyOfObject } from '../../client/index.ts'
import { wantedAttributes } from '../provisioning/csi/attributes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { Answers } from './answers.ts'
import type { ModifyingContext } from './context.ts'
import type { Attributes, IoName, Target } from './target.ts'
import { confirmedOf, type Undo, undoOf } from './undo.ts'

export type ClassLookup =
  | { readonly is: 'found'; readonly driverName: string; readonly parameters: Attributes }
  | { readonly is: 'missing' }
  /** The server has not been heard of, or does not serve classes. */
  | { readonly is: 'unknown' }

export type IoStatus = NonNullable<NonNullable<PersistentVolumeClaim['status']>['allocatedResourceStatuses']>[string]

export interface IoProgress {
  readonly allocated: string | undefined
  readonly status: IoStatus | undefined
}

export interface Situation {
  readonly wanted: Target
  /** With the gate off, classes are as if there were none: what they once gave stays. */
  readonly usesClasses: boolean
  /** What the claim's status says the volume has. */
  readonly inEffect: Target
  /** How far a change of the class has come, and to which. */
  readonly classStatus: 'Pending' | 'InProgress' | 'Infeasible' | undefined
  readonly classTarget: string | undefined
  readonly io: Readonly<Record<IoName, IoProgress>>
  readonly hasConditions: boolean
  readonly undo: Undo | undefined
  /** Attributes that the driver has confirmed, as far as is known. */
  readonly confirmed: Attributes
  readonly driverName: string
  readonly canModify: boolean
  /** The last call was answered for good, by yes or no. Otherwise the driver may still be at it. */
  readonly isAnswered: boolean
  /** It refused amounts because the volume was in use, and it still is. */
  readonly isHeldByUse: boolean
  /** What was refused, and rests. */
  readonly resting: string | undefined
  classOf(name: string): ClassLookup
}

export interface SituationDeps {
  readonly gates: FeatureGates
  /** Whether the server knows iops and throughput in a status. */
  readonly withIo: boolean
  readonly driverName: string
  readonly canModify: boolean
  readonly answers: Answers
  readonly isInUse: boolean
  classOf(name: string): ClassLookup
}

export async function situationOf(subject: Subject, context: ModifyingContext): Promise<Situation> {
  const { client, facts, gates, answers, pods, classOf } = context
  return readSituation(subject, {
    gates,
    answers,
    isInUse: pods !== undefined && isInUse(keyOfObject(subject.claim), pods),
    classOf,
    driverName: facts.name,
    canModify: facts.controller.has('MODIFY_VOLUME'),
    // Only our own server has commits, and only it takes iops and throughput in a status.
    withIo: namesIo(subject) && (await client.commitsAtomically()),
  })
}

const namesIo = ({ claim: { spec, status } }: Subject): boolean =>
  [spec?.resources?.requests, status?.capacity, status?.allocatedResources, status?.allocatedResourceStatuses].some(
    (list) => IO_RESOURCES.some((name) => list && Object.hasOwn(list, name)),
  )

/** Pure. */
export function readSituation({ claim, volume }: Subject, deps: SituationDeps): Situation {
  const { gates, driverName, canModify, answers, classOf } = deps
  const withClass = gates.enabled('VolumeAttributesClass')
  const changesIo = deps.withIo && gates.enabled('VolumeProvisionedIO')
  const { status = {} } = claim
  const wanted = wantedAttributes(claim, gates)
  const current = status.currentVolumeAttributesClassName || undefined
  const { modifyVolumeStatus } = withClass ? status : {}
  const had = (name: IoName) => (deps.withIo ? amountOf(status.capacity as Record<string, string>, name) : undefined)
  const inEffect: Target = { className: current, iops: had('iops'), throughput: had('throughput') }
  const progress = (name: IoName): IoProgress =>
    changesIo
      ? {
          allocated: amountOf(status.allocatedResources as Record<string, string>, name),
          status: status.allocatedResourceStatuses?.[name],
        }
      : { allocated: undefined, status: undefined }
  return {
    // With its gate off a class is not asked for, and none is taken away; nor is an amount that the volume has.
    wanted: {
      className: withClass ? wanted.className : current,
      iops: changesIo ? wanted.iops : inEffect.iops,
      throughput: changesIo ? wanted.throughput : inEffect.throughput,
    },
    usesClasses: withClass,
    inEffect,
    classStatus: modifyVolumeStatus?.status,
    classTarget: modifyVolumeStatus?.targetVolumeAttributesClassName || undefined,
    io: { iops: progress('iops'), throughput: progress('throughput') },
    hasConditions: withClass && (status.conditions ?? []).some(({ type }) => MODIFY_CONDITIONS.includes(type)),
    undo: undoOf(claim),
    confirmed: confirmedOf(volume) ?? {},
    driverName,
    canModify,
    isAnswered: answers.isAnswered(claim),
    isHeldByUse: deps.isInUse && answers.isOffline(claim),
    resting: answers.restingOf(claim),
    classOf,
  }
}

export const MODIFYING_VOLUME = 'ModifyingVolume'
export const MODIFY_VOLUME_ERROR = 'ModifyVolumeError'
const MODIFY_CONDITIONS: readonly string[] = [MODIFYING_VOLUME, MODIFY_VOLUME_ERROR]

/** Something was asked of the driver, and whether it was done is not known. */
export const isUncertain = ({ classStatus, io, isAnswered }: Situation): boolean =>
  !isAnswered &&
  (classStatus === 'InProgress' || IO_RESOURCES.some((name) => io[name].status === 'ControllerModifyVolumeInProgress'))
