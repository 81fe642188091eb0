// Reads the input of plan-modification.ts from a claim, its volume and the classes: the requested attributes, the current
// ones, and those in progress.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { keyOfObject } from '../../client/index.ts'
import { ioAmountOf, requestedAttributes } from '../provisioning/csi/attributes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { ModifyingContext } from './context.ts'
import type { LastResponses } from './last-responses.ts'
import { type Attributes, type IoName, isSameAmount, type Target } from './target.ts'
import { confirmedAttributesOf, type Undo, undoOf } from './undo.ts'

export type ClassLookup =
  | { readonly is: 'found'; readonly driverName: string; readonly parameters: Attributes }
  | { readonly is: 'missing' }
  /** The class cache is not synced, or the server does not serve classes. */
  | { readonly is: 'unknown' }

export type IoStatus = NonNullable<NonNullable<PersistentVolumeClaim['status']>['allocatedResourceStatuses']>[string]

interface IoProgress {
  readonly allocatedAmount: string | undefined
  readonly status: IoStatus | undefined
}

export interface Situation {
  readonly requestedTarget: Target
  /** False if the gate is disabled. Classes are then ignored, and attributes that they have set stay in effect. */
  readonly usesClasses: boolean
  /** The attributes in effect according to the claim's status, without the amounts that the current class sets. */
  readonly currentTarget: Target
  /** Whether iops and throughput are reported in claims and volumes. */
  readonly reportsIo: boolean
  /** status.modifyVolumeStatus. */
  readonly classStatus: 'Pending' | 'InProgress' | 'Infeasible' | undefined
  readonly classTarget: string | undefined
  readonly io: Readonly<Record<IoName, IoProgress>>
  readonly hasConditions: boolean
  readonly undo: Undo | undefined
  /** Attributes that the driver has confirmed, from the volume's annotation. */
  readonly confirmedAttributes: Attributes
  readonly driverName: string
  readonly canModify: boolean
  /** Whether the last call has a final response. If not, the driver may still be modifying the volume. */
  readonly hasFinalResponse: boolean
  /** Whether the driver rejected amounts because the volume was in use, and the volume is still in use. */
  readonly isBlockedByUse: boolean
  /** Fingerprint of the rejected call whose retry delay has not passed. */
  readonly rejectedCall: string | undefined
  lookUpClass(name: string): ClassLookup
}

interface SituationDeps {
  readonly gates: FeatureGates
  /** Whether the server accepts iops and throughput in a claim's status. */
  readonly isIoSupported: boolean
  readonly driverName: string
  readonly canModify: boolean
  readonly responses: LastResponses
  readonly isInUse: boolean
  lookUpClass(name: string): ClassLookup
}

export async function readSituation(subject: Subject, context: ModifyingContext): Promise<Situation> {
  const { client, facts, gates, responses, pods, lookUpClass } = context
  return buildSituation(subject, {
    gates,
    responses,
    isInUse: pods !== undefined && isInUse(keyOfObject(subject.claim), pods),
    lookUpClass,
    driverName: facts.name,
    canModify: facts.controller.has('MODIFY_VOLUME'),
    // Only the Stowage server commits atomically, and only it accepts iops and throughput in a claim's status.
    isIoSupported: hasIo(subject) && (await client.commitsAtomically()),
  })
}

const hasIo = ({ claim: { spec, status } }: Subject): boolean =>
  Boolean(spec?.volumeAttributesClassName || status?.currentVolumeAttributesClassName) || // a class may set amounts
  [spec?.resources?.requests, status?.capacity, status?.allocatedResources, status?.allocatedResourceStatuses].some(
    (list) => IO_RESOURCES.some((name) => list && Object.hasOwn(list, name)),
  )

/** Whether neither the spec nor the status of the claim mentions attributes. The plan is then to do nothing. */
export const isWithoutAttributes = (subject: Subject): boolean => {
  const { modifyVolumeStatus, conditions = [] } = subject.claim.status ?? {}
  return !hasIo(subject) && modifyVolumeStatus === undefined && !conditions.some(isOfModification)
}

/** Builds the situation from the objects. Pure. */
function buildSituation({ claim, volume }: Subject, deps: SituationDeps): Situation {
  const { gates, driverName, canModify, responses, lookUpClass } = deps
  const areClassesEnabled = gates.enabled('VolumeAttributesClass')
  const isIoEnabled = deps.isIoSupported && gates.enabled('VolumeProvisionedIO')
  const { status = {} } = claim
  const requestedTarget = requestedAttributes(claim, gates)
  const currentClass = status.currentVolumeAttributesClassName || undefined
  const { modifyVolumeStatus } = areClassesEnabled ? status : {}
  const isSetByClass = (name: IoName, amount: string | undefined): boolean => {
    if (amount === undefined || currentClass === undefined || requestedTarget[name] !== undefined) return false
    const lookup = lookUpClass(currentClass)
    const parameter = lookup.is === 'found' ? amountOf(lookup.parameters, name) : undefined
    return parameter !== undefined && isSameAmount(ioAmountOf(name, parameter), amount)
  }
  const currentAmount = (name: IoName) => {
    const amount = deps.isIoSupported ? amountOf(status.capacity as Record<string, string>, name) : undefined
    return isSetByClass(name, amount) ? undefined : amount
  }
  const currentTarget: Target = {
    className: currentClass,
    iops: currentAmount('iops'),
    throughput: currentAmount('throughput'),
  }
  const progressOf = (name: IoName): IoProgress =>
    isIoEnabled
      ? {
          allocatedAmount: amountOf(status.allocatedResources as Record<string, string>, name),
          status: status.allocatedResourceStatuses?.[name],
        }
      : { allocatedAmount: undefined, status: undefined }
  return {
    // If a gate is disabled, the class or amount in effect counts as requested, so that it does not change.
    requestedTarget: {
      className: areClassesEnabled ? requestedTarget.className : currentClass,
      iops: isIoEnabled ? requestedTarget.iops : currentTarget.iops,
      throughput: isIoEnabled ? requestedTarget.throughput : currentTarget.throughput,
    },
    usesClasses: areClassesEnabled,
    currentTarget,
    reportsIo: isIoEnabled,
    classStatus: modifyVolumeStatus?.status,
    classTarget: modifyVolumeStatus?.targetVolumeAttributesClassName || undefined,
    io: { iops: progressOf('iops'), throughput: progressOf('throughput') },
    hasConditions: areClassesEnabled && (status.conditions ?? []).some(isOfModification),
    undo: undoOf(claim),
    confirmedAttributes: confirmedAttributesOf(volume) ?? {},
    driverName,
    canModify,
    hasFinalResponse: responses.hasFinalResponse(claim),
    isBlockedByUse: deps.isInUse && responses.requiresOffline(claim),
    rejectedCall: responses.rejectedCallOf(claim),
    lookUpClass,
  }
}

export const MODIFYING_VOLUME = 'ModifyingVolume'
export const MODIFY_VOLUME_ERROR = 'ModifyVolumeError'
const MODIFY_CONDITIONS: readonly string[] = [MODIFYING_VOLUME, MODIFY_VOLUME_ERROR]
/** Reason of a ModifyVolumeError that stays after a rollback which could not restore all attributes. */
export const UNRESTORED_REASON = 'PreviousValueUnknown'

const isOfModification = ({ type, reason }: { readonly type: string; readonly reason?: string }): boolean =>
  MODIFY_CONDITIONS.includes(type) && reason !== UNRESTORED_REASON

/** Returns the class and the amounts of the modification in the status, for messages. */
export function cancelledTargetOf({ classTarget, io }: Situation): string {
  const amounts = IO_RESOURCES.filter((name) => io[name].status !== undefined && io[name].allocatedAmount !== undefined)
  return [...(classTarget ? [classTarget] : []), ...amounts.map((name) => `${name} ${io[name].allocatedAmount}`)].join(
    ', ',
  )
}

/** Whether a call is in progress or has no final response. */
export const isUncertain = ({ classStatus, io, hasFinalResponse }: Situation): boolean =>
  !hasFinalResponse &&
  (classStatus === 'InProgress' || IO_RESOURCES.some((name) => io[name].status === 'ControllerModifyVolumeInProgress'))
