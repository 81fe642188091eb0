// Plans the next step of a modification. Pure.
//   nothing   the requested attributes are in effect, and no modification is in progress
//   modify    call the driver: for the target that the claim requests now, or to restore the previous one (rollback). A
//             target that is no longer requested is never sent again, even if its call has no final response
//   drop      clear the status of a modification without a call, because there is no attribute to restore, or none that can
//             be restored
//   hold      the modification cannot start: the class is missing, the class in effect belongs to another driver, the driver
//             does not have MODIFY_VOLUME, or the volume is in use
//   reject    a new class belongs to another driver, or the target has two values for one attribute or a value that CSI cannot
//             express
//   delay     the driver rejected this call recently
//   wait      the class cache is not synced, or the server does not serve classes
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { composeParameters } from '../provisioning/csi/attributes.ts'
import { PreparationError } from '../provisioning/csi/preparation-error.ts'
import { isUncertain, type Situation } from './situation.ts'
import { type Attributes, formatIo, type IoName, isSameAmount, type Target } from './target.ts'
import { knownValues, type Undo } from './undo.ts'

export type Plan =
  | { readonly do: 'nothing' }
  | ModifyCall
  /** `unrestoredAttributes` contains attributes that may have changed and whose previous values are unknown. */
  | { readonly do: 'drop'; readonly unrestoredAttributes: readonly string[] }
  | { readonly do: 'hold'; readonly target: Target; readonly message: string }
  /** `io` contains the claim's own amounts that cannot be applied. */
  | { readonly do: 'reject'; readonly target: Target; readonly io: readonly IoName[]; readonly message: string }
  | { readonly do: 'delay'; readonly message: string }
  | { readonly do: 'wait'; readonly message: string }

export interface ModifyCall {
  readonly do: 'modify'
  readonly target: Target
  /** The mutable parameters of the call. */
  readonly attributes: Attributes
  /** The claim's own amounts that the class now replaces. */
  readonly replacedAmounts: readonly IoName[]
  /** `cancel` is a rollback to the attributes in effect. */
  readonly purpose: 'change' | 'cancel'
  /** Attributes that may have changed, that the call does not set, and whose previous values are unknown. */
  readonly unrestoredAttributes: readonly string[]
}

export function planModification(situation: Situation): Plan {
  const goal = desiredTargetOf(situation)
  if (isInEffect(situation, goal)) return isStarted(situation, goal) ? planRollback(situation, goal) : { do: 'nothing' }
  if (!situation.canModify) return { do: 'hold', target: goal, message: cannotModifyMessage(situation, goal) }
  return planChange(situation, goal)
}

/** Returns the requested target. Without a requested class it has the current class, which cannot be removed. */
export const desiredTargetOf = ({ requestedTarget, currentTarget }: Situation): Target => ({
  ...requestedTarget,
  className: requestedTarget.className ?? currentTarget.className,
})

const isInEffect = (situation: Situation, goal: Target): boolean =>
  goal.className === situation.currentTarget.className && IO_RESOURCES.every((name) => !isIoDue(situation, goal, name))

/** An amount that is no longer requested stays in effect, unless the class sets it. */
function isIoDue({ currentTarget, lookUpClass }: Situation, goal: Target, name: IoName): boolean {
  if (goal[name] !== undefined) return !isSameAmount(goal[name], currentTarget[name])
  if (currentTarget[name] === undefined || goal.className === undefined) return false
  const lookup = lookUpClass(goal.className)
  return lookup.is === 'found' && Object.hasOwn(lookup.parameters, name)
}

function isStarted(situation: Situation, goal: Target): boolean {
  const { classStatus, hasConditions, io } = situation
  const isIoStarted = IO_RESOURCES.some(
    (name) =>
      io[name].status !== undefined ||
      (io[name].allocatedAmount !== undefined && !isSameAmount(io[name].allocatedAmount, goal[name])),
  )
  return classStatus !== undefined || hasConditions || isIoStarted
}

/** Plans to restore the attributes that the driver may have changed. If there are none, the driver is not called. */
function planRollback(situation: Situation, goal: Target): Plan {
  const changedAttributes = changedAttributesOf(situation)
  if (Object.keys(changedAttributes).length === 0 || !situation.canModify)
    return { do: 'drop', unrestoredAttributes: [] }
  const composition = composeAttributes(situation, goal)
  if (composition.is === 'unknown') return { do: 'wait', message: composition.message }
  const attributes = {
    ...knownValues(changedAttributes),
    ...(composition.is === 'composed' ? composition.attributes : {}),
  }
  const replacedAmounts = composition.is === 'composed' ? composition.replacedAmounts : []
  const unrestoredAttributes = Object.keys(changedAttributes).filter((key) => !Object.hasOwn(attributes, key))
  if (Object.keys(attributes).length === 0) return { do: 'drop', unrestoredAttributes }
  return delayIfRejected(situation, {
    do: 'modify',
    target: goal,
    attributes,
    replacedAmounts,
    purpose: 'cancel',
    unrestoredAttributes,
  })
}

/** Returns the undo record. If another program started the modification, derives the attributes from its target. */
export function changedAttributesOf(situation: Situation): Undo {
  if (situation.undo) return situation.undo
  if (!isUncertain(situation)) return {}
  const composition = composeAttributes(situation, targetInProgress(situation))
  if (composition.is !== 'composed') return {}
  const currentAttributes = knownAttributes(situation)
  return Object.fromEntries(Object.keys(composition.attributes).map((key) => [key, currentAttributes[key] ?? null]))
}

function planChange(situation: Situation, goal: Target): Plan {
  const composition = composeAttributes(situation, goal)
  switch (composition.is) {
    case 'unknown':
      return { do: 'wait', message: composition.message }
    case 'missing':
      return planRollbackFirst(situation, { do: 'hold', target: goal, message: composition.message })
    case 'foreign': {
      const { message } = composition
      // The class in effect is not rejected: a class with the same name, but of another driver, has replaced it.
      if (goal.className === situation.currentTarget.className)
        return planRollbackFirst(situation, { do: 'hold', target: goal, message })
      // The driver of a class is immutable, so waiting does not help: Infeasible indicates that the claim needs another
      // class.
      const io = IO_RESOURCES.filter(
        (name) => goal[name] !== undefined && !isSameAmount(goal[name], situation.currentTarget[name]),
      )
      return planRollbackFirst(situation, { do: 'reject', target: goal, io, message })
    }
    case 'impossible': {
      const io = IO_RESOURCES.filter((name) => isIoDue(situation, goal, name) || isContradicted(situation, goal, name))
      return planRollbackFirst(situation, { do: 'reject', target: goal, io, message: composition.message })
    }
    case 'composed': {
      // Until a call is confirmed, every call also sets the attributes of earlier modifications to their previous values.
      const attributes = { ...knownValues(changedAttributesOf(situation)), ...composition.attributes }
      const { replacedAmounts } = composition
      const isHeld = situation.isBlockedByUse && IO_RESOURCES.some((name) => isIoDue(situation, goal, name))
      if (isHeld) return { do: 'hold', target: goal, message: inUseMessage(situation) }
      const call = {
        do: 'modify',
        target: goal,
        attributes,
        replacedAmounts,
        purpose: 'change',
        unrestoredAttributes: [],
      } as const
      return delayIfRejected(situation, call)
    }
  }
}

/**
 * Plans a rollback first if the new target cannot be applied and an earlier call has no final response. Otherwise the
 * changes of that call would stay in effect as long as the new target cannot be applied.
 */
function planRollbackFirst(situation: Situation, plan: Plan): Plan {
  const rollback = isUncertain(situation) ? planRollback(situation, situation.currentTarget) : plan
  return rollback.do === 'modify' ? rollback : plan
}

function delayIfRejected(situation: Situation, call: ModifyCall): Plan {
  if (situation.rejectedCall !== fingerprintOf(call)) return call
  return { do: 'delay', message: 'the driver rejected these attributes; they are retried later' }
}

/** Returns equal fingerprints for equal calls. */
export const fingerprintOf = ({ target, attributes }: ModifyCall): string =>
  JSON.stringify([target.className, target.iops, target.throughput, Object.entries(attributes).sort()])

/** Returns the target in progress according to the status, without a class that is pending or infeasible. */
function targetInProgress({ classStatus, classTarget, currentTarget, io, lookUpClass }: Situation): Target {
  const className = (classStatus === 'InProgress' ? classTarget : undefined) ?? currentTarget.className
  const lookup = className === undefined ? undefined : lookUpClass(className)
  const classParameters = lookup?.is === 'found' ? lookup.parameters : {}
  const amountInProgress = (name: IoName) => {
    const amount =
      io[name].status === 'ControllerModifyVolumeInProgress' ? io[name].allocatedAmount : currentTarget[name]
    // The class has replaced the claim's own amount, because an attribute is never sent with two values.
    return contradicts(classParameters, name, amount) ? undefined : amount
  }
  return { className, iops: amountInProgress('iops'), throughput: amountInProgress('throughput') }
}

function isContradicted({ lookUpClass }: Situation, { className, ...amounts }: Target, name: IoName): boolean {
  const lookup = className === undefined ? undefined : lookUpClass(className)
  return lookup?.is === 'found' && contradicts(lookup.parameters, name, amounts[name])
}

function contradicts(classParameters: Attributes, name: IoName, amount: string | undefined): boolean {
  if (amount === undefined || !Object.hasOwn(classParameters, name)) return false
  const onlyAmount = { className: undefined, iops: undefined, throughput: undefined, [name]: amount }
  try {
    composeParameters({ [name]: classParameters[name]! }, onlyAmount)
    return false
  } catch (error) {
    if (!(error instanceof PreparationError)) throw error
    return true
  }
}

type ComposedAttributes =
  | { readonly is: 'composed'; readonly attributes: Attributes; readonly replacedAmounts: readonly IoName[] }
  | { readonly is: 'missing' | 'foreign' | 'impossible' | 'unknown'; readonly message: string }

function composeAttributes(situation: Situation, target: Target): ComposedAttributes {
  const { driverName, lookUpClass, currentTarget, usesClasses } = situation
  const className = usesClasses ? target.className : undefined
  let classParameters: Attributes = {}
  if (className !== undefined) {
    const lookup = lookUpClass(className)
    if (lookup.is === 'unknown')
      return { is: 'unknown', message: `VolumeAttributesClass "${className}" is not known yet` }
    if (lookup.is === 'missing') return { is: 'missing', message: `VAC "${className}" does not exist.` }
    if (lookup.driverName !== driverName)
      return { is: 'foreign', message: otherDriverMessage(className, lookup.driverName, driverName) }
    classParameters = lookup.parameters
  }
  try {
    const replacedAmounts = IO_RESOURCES.filter(
      (name) => target[name] === undefined && currentTarget[name] !== undefined && Object.hasOwn(classParameters, name),
    )
    return { is: 'composed', attributes: composeParameters(classParameters, target), replacedAmounts }
  } catch (error) {
    if (!(error instanceof PreparationError)) throw error
    return { is: 'impossible', message: error.message }
  }
}

/**
 * Returns the attributes that are known to be in effect: those of the current class, the claim's amounts, and those that the
 * driver confirmed.
 */
export function knownAttributes({
  currentTarget,
  confirmedAttributes,
  lookUpClass,
  driverName,
}: Situation): Attributes {
  const lookup = currentTarget.className === undefined ? undefined : lookUpClass(currentTarget.className)
  const classParameters = lookup?.is === 'found' && lookup.driverName === driverName ? lookup.parameters : {}
  return { ...classParameters, ...ioAttributes(currentTarget), ...confirmedAttributes }
}

function ioAttributes(target: Target): Attributes {
  try {
    return composeParameters({}, target)
  } catch {
    return {} // amounts in the status that cannot be sent to a driver
  }
}

const otherDriverMessage = (className: string, classDriver: string, driverName: string): string =>
  `VAC ${className} referenced in PVC is for driver ${classDriver} which does not match driver name ${driverName}. ` +
  `The driver was not called; set a VolumeAttributesClass of ${driverName}.`

/** Does not contain the amounts, so that an edit of the amounts does not repeat the event. */
export const inUseMessage = ({ driverName }: Pick<Situation, 'driverName'>): string =>
  `CSI driver ${driverName} changes iops and throughput only while a volume is not in use, but pods use this one. ` +
  `The modification is retried when the last pod has terminated.`

function cannotModifyMessage({ driverName, currentTarget }: Situation, goal: Target): string {
  const isClass = goal.className !== currentTarget.className
  const goalText = isClass ? `VolumeAttributesClass "${goal.className}"` : `${formatIo(goal)} of the claim`
  return (
    `CSI driver ${driverName} cannot modify the volume to ${goalText}: controller MODIFY_VOLUME capability is not reported. ` +
    `The driver was not called; the volume keeps its attributes.`
  )
}
