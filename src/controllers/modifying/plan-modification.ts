// Plans the next step of a modification. Pure: the situation in, one step out.
//   nothing   the requested attributes are in effect, and no modification is in progress
//   modify    call the driver: for a new target, one without a final response, or the previous one (rollback)
//   drop      forget a modification that cannot have changed the volume
//   hold      cannot start: class missing or of another driver, driver without MODIFY_VOLUME, or volume in use
//   refuse    impossible: two values for one attribute, or a value beyond the driver's range
//   delay     the driver rejected this call recently
//   wait      the class cache is not synced
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { composeParameters } from '../provisioning/csi/attributes.ts'
import { PreparationError } from '../provisioning/csi/preparation-error.ts'
import { isUncertain, type Situation } from './situation.ts'
import { type Attributes, type IoName, ioText, sameAmount, sameTarget, type Target } from './target.ts'
import { knownValues, type Undo } from './undo.ts'

export type Plan =
  | { readonly do: 'nothing' }
  | ModifyCall
  | { readonly do: 'drop' }
  | { readonly do: 'hold'; readonly target: Target; readonly because: string }
  /** `io`: the claim's own amounts that fail; an amount in effect that contradicts nothing does not. */
  | { readonly do: 'refuse'; readonly target: Target; readonly io: readonly IoName[]; readonly because: string }
  | { readonly do: 'delay'; readonly because: string }
  | { readonly do: 'wait'; readonly because: string }

export interface ModifyCall {
  readonly do: 'modify'
  readonly target: Target
  /** The mutable parameters of the call. */
  readonly attributes: Attributes
  /** The claim's own amounts that the class now replaces. */
  readonly replaced: readonly IoName[]
  /** `cancel`: a rollback to the attributes in effect. */
  readonly purpose: 'change' | 'cancel'
}

export function planModification(situation: Situation): Plan {
  const goal = goalOf(situation)
  if (isInEffect(situation, goal)) return isStarted(situation, goal) ? planRollback(situation, goal) : { do: 'nothing' }
  if (!situation.canModify) return { do: 'hold', target: goal, because: cannotModify(situation, goal) }
  if (isUncertain(situation)) {
    // The driver may still be modifying the volume: repeat the same call until it has a final response.
    const recorded = recordedTarget(situation)
    const asked = sameTarget(recorded, goal) ? undefined : callFor(situation, recorded)
    if (asked) return asked
  }
  return planForward(situation, goal)
}

/** Without a requested class the current one stays: a class can be replaced but not removed. */
export const goalOf = ({ wanted, inEffect }: Situation): Target => ({
  ...wanted,
  className: wanted.className ?? inEffect.className,
})

const isInEffect = (situation: Situation, goal: Target): boolean =>
  goal.className === situation.inEffect.className && IO_RESOURCES.every((name) => !isIoDue(situation, goal, name))

/** An amount that is no longer requested stays in effect, unless the class sets it. */
function isIoDue({ inEffect, classOf }: Situation, goal: Target, name: IoName): boolean {
  if (goal[name] !== undefined) return !sameAmount(goal[name], inEffect[name])
  if (inEffect[name] === undefined || goal.className === undefined) return false
  const found = classOf(goal.className)
  return found.is === 'found' && Object.hasOwn(found.parameters, name)
}

function isStarted(situation: Situation, goal: Target): boolean {
  const { classStatus, hasConditions, io } = situation
  const isIoBegun = IO_RESOURCES.some(
    (name) =>
      io[name].status !== undefined ||
      (io[name].allocated !== undefined && !sameAmount(io[name].allocated, goal[name])),
  )
  return classStatus !== undefined || hasConditions || isIoBegun
}

/** Restores only attributes that the driver may have changed; without any, the driver is not called. */
function planRollback(situation: Situation, goal: Target): Plan {
  const touched = touchedBy(situation)
  if (Object.keys(touched).length === 0 || !situation.canModify) return { do: 'drop' }
  const own = attributesOf(situation, goal)
  if (own.is === 'unknown') return { do: 'wait', because: own.because }
  const attributes = { ...knownValues(touched), ...(own.is === 'composed' ? own.attributes : {}) }
  const replaced = own.is === 'composed' ? own.replaced : []
  const isLost = Object.keys(touched).some((key) => !Object.hasOwn(attributes, key))
  if (isLost && goal.className === undefined && isUncertain(situation)) {
    // The previous values are not known: completing the modification is the only way to a known state.
    const finishing = callFor(situation, recordedTarget(situation))
    if (finishing) return finishing
  }
  if (Object.keys(attributes).length === 0) return { do: 'drop' }
  return unlessRejected(situation, { do: 'modify', target: goal, attributes, replaced, purpose: 'cancel' })
}

/** From the undo record; for a modification that another program started, derived from its target. */
function touchedBy(situation: Situation): Undo {
  if (situation.undo) return situation.undo
  if (!isUncertain(situation)) return {}
  const found = attributesOf(situation, recordedTarget(situation))
  if (found.is !== 'composed') return {}
  const known = knownAttributes(situation)
  return Object.fromEntries(Object.keys(found.attributes).map((key) => [key, known[key] ?? null]))
}

function planForward(situation: Situation, goal: Target): Plan {
  const found = attributesOf(situation, goal)
  switch (found.is) {
    case 'unknown':
      return { do: 'wait', because: found.because }
    case 'missing':
    case 'foreign':
      return afterRollback(situation, { do: 'hold', target: goal, because: found.because })
    case 'impossible': {
      const io = IO_RESOURCES.filter((name) => isIoDue(situation, goal, name) || isContradicted(situation, goal, name))
      return afterRollback(situation, { do: 'refuse', target: goal, io, because: found.because })
    }
    case 'composed': {
      const attributes = { ...knownValues(situation.undo ?? {}), ...found.attributes }
      const { replaced } = found
      const isHeld = situation.isHeldByUse && IO_RESOURCES.some((name) => isIoDue(situation, goal, name))
      if (isHeld) return { do: 'hold', target: goal, because: heldByUse(situation) }
      return unlessRejected(situation, { do: 'modify', target: goal, attributes, replaced, purpose: 'change' })
    }
  }
}

/**
 * The target is impossible, and the modification without a final response cannot be repeated because its class was
 * deleted: roll it back first, or its changes would stay for as long as the target is impossible.
 */
function afterRollback(situation: Situation, plan: Plan): Plan {
  const back = isUncertain(situation) ? planRollback(situation, situation.inEffect) : plan
  return back.do === 'modify' ? back : plan
}

function unlessRejected(situation: Situation, ask: ModifyCall): Plan {
  if (situation.rejected !== fingerprintOf(ask)) return ask
  return { do: 'delay', because: 'the driver rejected these attributes; they are retried later' }
}

/** Identifies a call: equal calls have equal fingerprints. */
export const fingerprintOf = ({ target, attributes }: ModifyCall): string =>
  JSON.stringify([target.className, target.iops, target.throughput, Object.entries(attributes).sort()])

function callFor(situation: Situation, target: Target): ModifyCall | undefined {
  const found = attributesOf(situation, target)
  if (found.is !== 'composed' || Object.keys(found.attributes).length === 0) return undefined
  // Includes the undo record: attributes of an earlier modification must be restored until a call is confirmed.
  const attributes = { ...knownValues(situation.undo ?? {}), ...found.attributes }
  return { do: 'modify', target, attributes, replaced: found.replaced, purpose: 'change' }
}

/** The target in progress by the status. Excludes a class that was rejected or is missing, though the status names it. */
export function recordedTarget({ classStatus, classTarget, inEffect, io, classOf }: Situation): Target {
  const className = (classStatus === 'InProgress' ? classTarget : undefined) ?? inEffect.className
  const found = className === undefined ? undefined : classOf(className)
  const ofClass = found?.is === 'found' ? found.parameters : {}
  const amount = (name: IoName) => {
    const own = io[name].status === 'ControllerModifyVolumeInProgress' ? io[name].allocated : inEffect[name]
    // One attribute is never sent with two values: the class replaced the claim's own amount.
    return contradicts(ofClass, name, own) ? undefined : own
  }
  return { className, iops: amount('iops'), throughput: amount('throughput') }
}

function isContradicted({ classOf }: Situation, { className, ...amounts }: Target, name: IoName): boolean {
  const found = className === undefined ? undefined : classOf(className)
  return found?.is === 'found' && contradicts(found.parameters, name, amounts[name])
}

function contradicts(ofClass: Attributes, name: IoName, own: string | undefined): boolean {
  if (own === undefined || !Object.hasOwn(ofClass, name)) return false
  const alone = { className: undefined, iops: undefined, throughput: undefined, [name]: own }
  try {
    composeParameters({ [name]: ofClass[name]! }, alone)
    return false
  } catch (error) {
    if (!(error instanceof PreparationError)) throw error
    return true
  }
}

type Found =
  | { readonly is: 'composed'; readonly attributes: Attributes; readonly replaced: readonly IoName[] }
  | { readonly is: 'missing' | 'foreign' | 'impossible' | 'unknown'; readonly because: string }

function attributesOf(situation: Situation, target: Target): Found {
  const { driverName, classOf, inEffect, usesClasses } = situation
  const className = usesClasses ? target.className : undefined
  let ofClass: Attributes = {}
  if (className !== undefined) {
    const found = classOf(className)
    if (found.is === 'unknown')
      return { is: 'unknown', because: `VolumeAttributesClass "${className}" is not known yet` }
    if (found.is === 'missing') return { is: 'missing', because: `VAC "${className}" does not exist.` }
    if (found.driverName !== driverName)
      return { is: 'foreign', because: otherDriver(className, found.driverName, driverName) }
    ofClass = found.parameters
  }
  try {
    const replaced = IO_RESOURCES.filter(
      (name) => target[name] === undefined && inEffect[name] !== undefined && Object.hasOwn(ofClass, name),
    )
    return { is: 'composed', attributes: composeParameters(ofClass, target), replaced }
  } catch (error) {
    if (!(error instanceof PreparationError)) throw error
    return { is: 'impossible', because: error.message }
  }
}

/** Attributes known to be in effect: confirmed by the driver, or from the current class. */
export function knownAttributes({ inEffect, confirmed, classOf, driverName }: Situation): Attributes {
  const found = inEffect.className === undefined ? undefined : classOf(inEffect.className)
  const ofClass = found?.is === 'found' && found.driverName === driverName ? found.parameters : {}
  return { ...ofClass, ...ioAttributes(inEffect), ...confirmed }
}

function ioAttributes(target: Target): Attributes {
  try {
    return composeParameters({}, target)
  } catch {
    return {} // amounts in the status that cannot be sent to a driver
  }
}

const otherDriver = (className: string, theirs: string, ours: string): string =>
  `VAC ${className} referenced in PVC is for driver ${theirs} which does not match driver name ${ours}. ` +
  `The driver was not called; set a VolumeAttributesClass of ${ours}.`

/** Does not name the amounts, so that an edit of them does not repeat the event. */
export const heldByUse = ({ driverName }: Pick<Situation, 'driverName'>): string =>
  `CSI driver ${driverName} changes iops and throughput only while a volume is not in use, and pods use this one. ` +
  `The modification is retried when the last pod has terminated.`

function cannotModify({ driverName, inEffect }: Situation, goal: Target): string {
  const isClass = goal.className !== inEffect.className
  const what = isClass ? `VolumeAttributesClass "${goal.className}"` : `${ioText(goal)} of the claim`
  return (
    `CSI driver ${driverName} cannot modify the volume to ${what}: controller MODIFY_VOLUME capability is not reported. ` +
    `The driver was not called; the volume keeps its attributes.`
  )
}
