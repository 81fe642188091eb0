// Reads a claim, its volume and their classes into one value: the requested, current and pending values.
// The plan (plan-modification.ts) depends on nothing else.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { keyOfObject } from '../../client/index.ts'
import { requestedAttributes } from '../provisioning/csi/attributes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { ModifyingContext } from './context.ts'
import type { LastResponses } from './last-responses.ts'
import type { Attributes, IoName, Target } from './target.ts'
import { confirmedOf, type Undo, undoOf } from './undo.ts'

export type ClassLookup =
  | { readonly is: 'found'; readonly driverName: string; readonly parameters: Attributes }
  | { readonly is: 'missing' }
  /** The class cache is not synced, or the server does not serve classes. */
  | { readonly is: 'unknown' }

export type IoStatus = NonNullable<NonNullable<PersistentVolumeClaim['status']>['allocatedResourceStatuses']>[string]

export interface IoProgress {
  readonly allocated: string | undefined
  readonly status: IoStatus | undefined
}

export interface Situation {
  readonly wanted: Target
  /** False with the gate off: classes are ignored, and attributes set by them stay. */
  readonly usesClasses: boolean
  /** The attributes in the claim's status. */
  readonly inEffect: Target
  /** status.modifyVolumeStatus. */
  readonly classStatus: 'Pending' | 'InProgress' | 'Infeasible' | undefined
  readonly classTarget: string | undefined
  readonly io: Readonly<Record<IoName, IoProgress>>
  readonly hasConditions: boolean
  readonly undo: Undo | undefined
  /** Attributes that the driver has confirmed, by the volume's annotation. */
  readonly confirmed: Attributes
  readonly driverName: string
  readonly canModify: boolean
  /** The last call has a final response. Otherwise the driver may still be modifying the volume. */
  readonly isAnswered: boolean
  /** The driver rejected amounts because the volume was in use, and it still is. */
  readonly isHeldByUse: boolean
  /** The rejected call (fingerprintOf) whose retry delay has not passed. */
  readonly rejected: string | undefined
  classOf(name: string): ClassLookup
}

export interface SituationDeps {
  readonly gates: FeatureGates
  /** Whether the server accepts iops and throughput in a claim's status. */
  readonly withIo: boolean
  readonly driverName: string
  readonly canModify: boolean
  readonly responses: LastResponses
  readonly isInUse: boolean
  classOf(name: string): ClassLookup
}

export async function situationOf(subject: Subject, context: ModifyingContext): Promise<Situation> {
  const { client, facts, gates, responses, pods, classOf } = context
  return readSituation(subject, {
    gates,
    responses,
    isInUse: pods !== undefined && isInUse(keyOfObject(subject.claim), pods),
    classOf,
    driverName: facts.name,
    canModify: facts.controller.has('MODIFY_VOLUME'),
    // Only the Stowage server commits atomically, and only it accepts iops and throughput in a claim's status.
    withIo: namesIo(subject) && (await client.commitsAtomically()),
  })
}

const namesIo = ({ claim: { spec, status } }: Subject): boolean =>
  [spec?.resources?.requests, status?.capacity, status?.allocatedResources, status?.allocatedResourceStatuses].some(
    (list) => IO_RESOURCES.some((name) => list && Object.hasOwn(list, name)),
  )

/** Pure. */
export function readSituation({ claim, volume }: Subject, deps: SituationDeps): Situation {
  const { gates, driverName, canModify, responses, classOf } = deps
  const withClass = gates.enabled('VolumeAttributesClass')
  const changesIo = deps.withIo && gates.enabled('VolumeProvisionedIO')
  const { status = {} } = claim
  const wanted = requestedAttributes(claim, gates)
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
    // With its gate off, the class or amount in effect counts as requested: nothing changes.
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
    isAnswered: responses.isAnswered(claim),
    isHeldByUse: deps.isInUse && responses.requiresOffline(claim),
    rejected: responses.rejectedOf(claim),
    classOf,
  }
}

export const MODIFYING_VOLUME = 'ModifyingVolume'
export const MODIFY_VOLUME_ERROR = 'ModifyVolumeError'
const MODIFY_CONDITIONS: readonly string[] = [MODIFYING_VOLUME, MODIFY_VOLUME_ERROR]

/** A call is in progress or has no final response. */
export const isUncertain = ({ classStatus, io, isAnswered }: Situation): boolean =>
  !isAnswered &&
  (classStatus === 'InProgress' || IO_RESOURCES.some((name) => io[name].status === 'ControllerModifyVolumeInProgress'))
