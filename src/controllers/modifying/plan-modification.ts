// Decides what is due for one claim. Pure: the situation in, one action out.
//   nothing   what is wanted is in effect, and nothing was begun
//   ask       the driver is asked for a target: a new one, the one it has not answered about, or the one before
//   drop      nothing that was begun can have changed the volume: it is forgotten
//   hold      cannot begin: no such class, another driver's class, a driver that modifies nothing, or none in use
//   refuse    cannot be: two values for one attribute, or more than a driver takes
//   rest      was refused a while ago, and nothing has changed since
//   wait      the classes are not known
import { IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { composed } from '../provisioning/csi/attributes.ts'
import { Refusal } from '../provisioning/csi/refusal.ts'
import { isUncertain, type Situation } from './situation.ts'
import { type Attributes, type IoName, ioText, sameAmount, sameTarget, type Target } from './target.ts'
import { putBack, type Undo } from './undo.ts'

export type Plan =
  | { readonly do: 'nothing' }
  | Ask
  | { readonly do: 'drop' }
  | { readonly do: 'hold'; readonly target: Target; readonly because: string }
  /** `io`: the claim's own amounts that are concerned; one that is in effect and contradicts nothing is not. */
  | { readonly do: 'refuse'; readonly target: Target; readonly io: readonly IoName[]; readonly because: string }
  | { readonly do: 'rest'; readonly because: string }
  | { readonly do: 'wait'; readonly because: string }

export interface Ask {
  readonly do: 'ask'
  readonly target: Target
  /** What the driver is sent. */
  readonly attributes: Attributes
  /** Amounts of the claim's own in whose place the class now has one. */
  readonly replaced: readonly IoName[]
  /** `cancel`: what is wanted is in effect already, and is to be so in the driver again. */
  readonly purpose: 'change' | 'cancel'
}

export function planModification(situation: Situation): Plan {
  const goal = goalOf(situation)
  if (isInEffect(situation, goal)) return isBegun(situation, goal) ? planWayBack(situation, goal) : { do: 'nothing' }
  if (!situation.canModify) return { do: 'hold', target: goal, because: cannotModify(situation, goal) }
  if (isUncertain(situation)) {
    // The driver may be at it: until it has answered, it is asked for nothing else.
    const recorded = recordedTarget(situation)
    const asked = sameTarget(recorded, goal) ? undefined : askFor(situation, recorded)
    if (asked) return asked
  }
  return planForward(situation, goal)
}

/** No class means the class in effect: it can be exchanged but not taken away. */
export const goalOf = ({ wanted, inEffect }: Situation): Target => ({
  ...wanted,
  className: wanted.className ?? inEffect.className,
})

const isInEffect = (situation: Situation, goal: Target): boolean =>
  goal.className === situation.inEffect.className && IO_RESOURCES.every((name) => !isIoDue(situation, goal, name))

/** An amount that is no longer asked for stays as it is, unless the class has one of its own. */
function isIoDue({ inEffect, classOf }: Situation, goal: Target, name: IoName): boolean {
  if (goal[name] !== undefined) return !sameAmount(goal[name], inEffect[name])
  if (inEffect[name] === undefined || goal.className === undefined) return false
  const found = classOf(goal.className)
  return found.is === 'found' && Object.hasOwn(found.parameters, name)
}

function isBegun(situation: Situation, goal: Target): boolean {
  const { classStatus, hasConditions, io } = situation
  const isIoBegun = IO_RESOURCES.some(
    (name) =>
      io[name].status !== undefined ||
      (io[name].allocated !== undefined && !sameAmount(io[name].allocated, goal[name])),
  )
  return classStatus !== undefined || hasConditions || isIoBegun
}

/** Only what the driver may have changed is put back; where nothing was, it is not asked. */
function planWayBack(situation: Situation, goal: Target): Plan {
  const touched = touchedBy(situation)
  if (Object.keys(touched).length === 0 || !situation.canModify) return { do: 'drop' }
  const own = attributesOf(situation, goal)
  if (own.is === 'unknown') return { do: 'wait', because: own.because }
  const attributes = { ...putBack(touched), ...(own.is === 'composed' ? own.attributes : {}) }
  const replaced = own.is === 'composed' ? own.replaced : []
  const isLost = Object.keys(touched).some((key) => !Object.hasOwn(attributes, key))
  if (isLost && goal.className === undefined && isUncertain(situation)) {
    // What the volume had before, nobody knows: the one way to know what it has now is to finish.
    const finishing = askFor(situation, recordedTarget(situation))
    if (finishing) return finishing
  }
  if (Object.keys(attributes).length === 0) return { do: 'drop' }
  return unlessResting(situation, { do: 'ask', target: goal, attributes, replaced, purpose: 'cancel' })
}

/** As recorded before the driver was asked; what another program began has to be guessed from its target. */
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
      return afterWayBack(situation, { do: 'hold', target: goal, because: found.because })
    case 'impossible': {
      const io = IO_RESOURCES.filter((name) => isIoDue(situation, goal, name) || isContradicted(situation, goal, name))
      return afterWayBack(situation, { do: 'refuse', target: goal, io, because: found.because })
    }
    case 'composed': {
      const attributes = { ...putBack(situation.undo ?? {}), ...found.attributes }
      const { replaced } = found
      const isHeld = situation.isHeldByUse && IO_RESOURCES.some((name) => isIoDue(situation, goal, name))
      if (isHeld) return { do: 'hold', target: goal, because: heldByUse(situation) }
      return unlessResting(situation, { do: 'ask', target: goal, attributes, replaced, purpose: 'change' })
    }
  }
}

/**
 * Nothing else can be asked for, not even what was not answered, as its class is gone: what the driver may have done of it
 * is put back first, or it would stay for as long.
 */
function afterWayBack(situation: Situation, plan: Plan): Plan {
  const back = isUncertain(situation) ? planWayBack(situation, situation.inEffect) : plan
  return back.do === 'ask' ? back : plan
}

function unlessResting(situation: Situation, ask: Ask): Plan {
  if (situation.resting !== fingerprintOf(ask)) return ask
  return { do: 'rest', because: 'the driver refused these attributes, and they have not changed since' }
}

/** What tells one request from another. */
export const fingerprintOf = ({ target, attributes }: Ask): string =>
  JSON.stringify([target.className, target.iops, target.throughput, Object.entries(attributes).sort()])

function askFor(situation: Situation, target: Target): Ask | undefined {
  const found = attributesOf(situation, target)
  if (found.is !== 'composed' || Object.keys(found.attributes).length === 0) return undefined
  // As it was asked for first: what an earlier change may have left is owed until something is confirmed.
  const attributes = { ...putBack(situation.undo ?? {}), ...found.attributes }
  return { do: 'ask', target, attributes, replaced: found.replaced, purpose: 'change' }
}

/** What the status says is being tried. A class that was refused or is missing is no part of it, though its name stays told. */
export function recordedTarget({ classStatus, classTarget, inEffect, io, classOf }: Situation): Target {
  const className = (classStatus === 'InProgress' ? classTarget : undefined) ?? inEffect.className
  const found = className === undefined ? undefined : classOf(className)
  const ofClass = found?.is === 'found' ? found.parameters : {}
  const amount = (name: IoName) => {
    const own = io[name].status === 'ControllerModifyVolumeInProgress' ? io[name].allocated : inEffect[name]
    // Two values for one attribute are never sent: the class's was to take the place of the claim's own.
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
    composed({ [name]: ofClass[name]! }, alone)
    return false
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
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
      return { is: 'foreign', because: foreign(className, found.driverName, driverName) }
    ofClass = found.parameters
  }
  try {
    const replaced = IO_RESOURCES.filter(
      (name) => target[name] === undefined && inEffect[name] !== undefined && Object.hasOwn(ofClass, name),
    )
    return { is: 'composed', attributes: composed(ofClass, target), replaced }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { is: 'impossible', because: error.message }
  }
}

/** What the driver has confirmed or was told by the class in effect. */
export function knownAttributes({ inEffect, confirmed, classOf, driverName }: Situation): Attributes {
  const found = inEffect.className === undefined ? undefined : classOf(inEffect.className)
  const ofClass = found?.is === 'found' && found.driverName === driverName ? found.parameters : {}
  return { ...ofClass, ...ioAttributes(inEffect), ...confirmed }
}

function ioAttributes(target: Target): Attributes {
  try {
    return composed({}, target)
  } catch {
    return {} // a status that nobody could have sent says nothing
  }
}

const foreign = (className: string, theirs: string, ours: string): string =>
  `VAC ${className} referenced in PVC is for driver ${theirs} which does not match driver name ${ours}. ` +
  `Nothing was sent to the driver; name a VolumeAttributesClass of ${ours}.`

/** In one wording for all amounts: it stays said while they change. */
export const heldByUse = ({ driverName }: Pick<Situation, 'driverName'>): string =>
  `CSI driver ${driverName} changes iops and throughput only of volumes that are not in use, and pods use this one. ` +
  `It is asked again when the last of them has ended.`

function cannotModify({ driverName, inEffect }: Situation, goal: Target): string {
  const isClass = goal.className !== inEffect.className
  const what = isClass ? `VolumeAttributesClass "${goal.className}"` : `${ioText(goal)} of the claim`
  return (
    `CSI driver ${driverName} cannot give the volume ${what}: controller MODIFY_VOLUME capability is not reported. ` +
    `Nothing was sent to the driver; the volume keeps its attributes.`
  )
}
