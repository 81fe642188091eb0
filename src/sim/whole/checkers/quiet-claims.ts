// At rest: every claim has what it asks for or says why not, and the reason is true; what it is said to have is there; and
// what holds it does so for a reason.
import { claimClassName, volumeClassName } from '../../../api/kinds/shared/class-names.ts'
import { compareQuantities, quantityToBytes } from '../../../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../../api/selectors.ts'
import { INTENT_PREFIX } from '../../../controllers/provisioning/intent.ts'
import { CLAIM_PROTECTION_FINALIZER, SELECTED_NODE } from '../../../volumes/names.ts'
import type { Stage } from '../stage.ts'
import { DRIVERS, type DriverName } from '../universe.ts'
import { assetOf, type Of } from '../view.ts'
import { classInEffect, toldAttributes, undoOf } from './attributes.ts'
import { claimsOf, hasEnded, heldAt, isContradictory, isGoing, type Problem, partsOf } from './court.ts'
import { canHaveAttributes, driverOf, freeBytes, isMakeable, requestOf, settingsIn } from './feasible.ts'
import type { Quiet } from './quiet.ts'

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'
const CLONE_FINALIZER = 'provisioner.storage.kubernetes.io/cloning-protection'
const RESIZE_CONDITIONS = ['ControllerResizeError', 'NodeResizeError', 'FileSystemResizePending']
const AMOUNTS = ['iops', 'throughput'] as const

type Found = (rule: Problem['rule'], text: string) => void

export function claimProblems(claim: Of<'claim'>, quiet: Quiet): Problem[] {
  const problems: Problem[] = []
  const found: Found = (rule, text) => void problems.push({ rule, text: `claim ${keyOf(claim)} ${text}` })
  judgeEnd(claim, quiet, found)
  switch (claim.status?.phase) {
    case 'Bound':
      judgeBound(claim, quiet, found)
      break
    case 'Lost':
      if (quiet.told.about(claim.metadata.uid).length === 0) found('says not why', 'is Lost, and nobody has said so')
      if (ownVolume(claim, quiet)) found('could go on', 'is Lost, and has its volume')
      break
    default:
      if (!isGoing(claim)) judgePending(claim, quiet, found)
  }
  return problems
}

/** What holds a claim that is going, and what holds one that is not. */
function judgeEnd(claim: Of<'claim'>, quiet: Quiet, found: Found): void {
  const { view, told } = quiet
  const { finalizers = [], uid, namespace, name, ownerReferences = [] } = claim.metadata
  const users = usersOf(claim, quiet)
  const isCopied = [...view.claims.values()].some(
    ({ metadata, spec }) => metadata.namespace === namespace && spec?.dataSource?.name === name && !spec?.volumeName,
  )
  const isHeldBy: Readonly<Record<string, boolean>> = {
    [CLAIM_PROTECTION_FINALIZER]: users.some(({ spec }) => spec?.nodeName),
    [CLONE_FINALIZER]: isCopied,
  }
  for (const finalizer of finalizers) {
    const isIntent = finalizer.startsWith(INTENT_PREFIX)
    if (isIntent && claim.spec?.volumeName) found('finalizers', `has a volume, and keeps ${finalizer}`)
    // What protects a claim's copies stays on it, for the next copy: only one that is going is let go of.
    if (!isGoing(claim)) continue
    if (isIntent && told.about(uid).length === 0) found('says not why', `is going, and does not say why it is not gone`)
    if (isHeldBy[finalizer] === false) found('not gone', `is stuck in its deletion, held by ${finalizer}`)
  }
  if (isGoing(claim) && finalizers.length === 0) found('not gone', 'is stuck in its deletion, held by nobody')
  const owner = ownerReferences.find(({ kind }) => kind === 'Pod')
  if (owner && !isGoing(claim) && ![...view.pods.values()].some(({ metadata }) => metadata.uid === owner.uid)) {
    found('not gone', `belongs to pod ${owner.name}, which is gone`)
  }
}

const usersOf = (claim: Of<'claim'>, { view }: Quiet): Of<'pod'>[] =>
  [...view.pods.values()].filter((pod) => !hasEnded(pod) && claimsOf(pod, view).some(({ key }) => key === keyOf(claim)))

const ownVolume = ({ metadata, spec }: Of<'claim'>, { view }: Quiet): Of<'volume'> | undefined => {
  const volume = view.volumes.get(spec?.volumeName ?? '')
  return volume?.spec?.claimRef?.uid === metadata.uid ? volume : undefined
}

function judgePending(claim: Of<'claim'>, quiet: Quiet, found: Found): void {
  const { view, told, stage } = quiet
  const said = told.about(claim.metadata.uid)
  if (said.length === 0) found('says not why', 'is Pending, and does not say why')
  const isNamespaceGoing = view.namespaces.get(claim.metadata.namespace ?? '')?.metadata.deletionTimestamp
  if (isNamespaceGoing || quiet.past.hadGatesOff) return
  const className = claimClassName(claim)
  const storageClass = view.classes.get(className ?? '')
  const isDefault = ({ metadata }: Of<'class'>) => metadata.annotations?.[DEFAULT_CLASS] === 'true'
  const because = `it says "${said.at(-1) ?? 'nothing'}"`
  const defaults =
    className === undefined && !claim.spec?.volumeName ? [...view.classes.values()].filter(isDefault) : []
  // The newest is taken, and a quota of that class may have no room for the claim.
  if (defaults.length > 0 && !defaults.some(({ metadata }) => isBarred(claim, metadata.name ?? '', quiet))) {
    found('could go on', `has no class, though there is a default one: ${because}`)
  }
  const node = claim.metadata.annotations?.[SELECTED_NODE]
  const isWaiting = storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && !node
  if (isWaiting) return // for a pod; which says why it waits
  const volume = [...view.volumes.values()].find((one) => fits(one, claim))
  if (volume) found('could go on', `could have volume ${volume.metadata.name}: ${because}`)
  else if (storageClass && isMakeable(claim, storageClass, { stage, view }, node)) {
    found('could go on', `could be made a volume by ${driverOf(storageClass)}: ${because}`)
  }
}

/** Whether a quota of its namespace bounds the claims of a class, and has no room for this one. */
function isBarred(claim: Of<'claim'>, className: string, { view }: Quiet): boolean {
  const amounts = { 'requests.storage': BigInt(requestOf(claim)), persistentvolumeclaims: 1n }
  return [...view.quotas.values()].some(
    ({ metadata, spec, status }) =>
      metadata.namespace === claim.metadata.namespace &&
      Object.entries(amounts).some(([what, amount]) => {
        const key = `${className}.storageclass.storage.k8s.io/${what}`
        const hard = spec?.hard?.[key]
        return hard !== undefined && quantityToBytes(status?.used?.[key] ?? '0') + amount > quantityToBytes(hard)
      }),
  )
}

/** Whether a free volume is what the claim asks for, said once more and independently of the binder. */
function fits({ metadata, spec, status }: Of<'volume'>, claim: Of<'claim'>): boolean {
  const wanted = claim.spec ?? {}
  const { claimRef } = spec ?? {}
  const isReserved = claimRef && `${claimRef.namespace}/${claimRef.name}` === keyOf(claim) && !claimRef.uid
  return (
    status?.phase === 'Available' &&
    (!claimRef || isReserved === true) &&
    !metadata.deletionTimestamp &&
    (!wanted.volumeName || wanted.volumeName === metadata.name) &&
    volumeClassName({ metadata, spec }) === (claimClassName(claim) ?? '') &&
    (spec?.volumeMode ?? 'Filesystem') === (wanted.volumeMode ?? 'Filesystem') &&
    (spec?.volumeAttributesClassName || '') === (wanted.volumeAttributesClassName || '') &&
    compareQuantities(spec?.capacity?.storage ?? '0', wanted.resources?.requests?.storage ?? '0') >= 0 &&
    (wanted.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode)) &&
    (!wanted.selector || matchesLabels(labelSelectorFromObject(wanted.selector), metadata.labels))
  )
}

function judgeBound(claim: Of<'claim'>, quiet: Quiet, found: Found): void {
  const volume = ownVolume(claim, quiet)
  if (!volume) {
    found('could go on', `is Bound, and ${claim.spec?.volumeName} is not its own`)
    return
  }
  if (volume.status?.phase !== 'Bound') found('could go on', `is Bound, and its volume is ${volume.status?.phase}`)
  const asset = assetOf(volume)
  const { driver } = partsOf(asset ?? '')
  // What the storage forgot cannot be changed, and nobody else's storage is looked into.
  if (!asset || !DRIVERS.includes(driver) || quiet.past.isLost(asset)) return
  judgeSize(claim, volume, asset, quiet, found)
  judgeAttributes(claim, volume, asset, quiet, found)
}

function judgeSize(claim: Of<'claim'>, volume: Of<'volume'>, asset: string, quiet: Quiet, found: Found): void {
  const { stage, told } = quiet
  const held = heldAt(stage, asset)
  const has = Number(quantityToBytes(claim.status?.capacity?.storage ?? '0'))
  const objectHas = Number(quantityToBytes(volume.spec?.capacity?.storage ?? '0'))
  const wanted = requestOf(claim)
  const state = claim.status?.allocatedResourceStatuses?.storage
  if (!held) return
  // The node's part waits for a pod that may write; once there is one, nothing is in the way.
  const hasWriter = (): boolean =>
    usersOf(claim, quiet).some(({ status, spec }) => {
      const isReadOnly = spec?.volumes?.some(({ persistentVolumeClaim: of }) => of?.readOnly)
      return status?.phase === 'Running' && !isReadOnly
    })
  // Of a volume that another claim let go of half grown: no growth of its own, and yet the node's turn.
  const isPending = claim.status?.conditions?.some(({ type }) => type === 'FileSystemResizePending')
  const isLeftToNode = state === undefined && isPending === true && objectHas === held.capacityBytes
  const isWaitingForPod = isLeftToNode && (isGoing(claim) || !hasWriter())
  const mayBeLarger = quiet.past.mayHaveGrownBefore(asset, claim.metadata.uid ?? '')
  const isAsHeld = has === held.capacityBytes || (mayBeLarger && has < held.capacityBytes)
  if (state === undefined && !isWaitingForPod && (has !== objectHas || !isAsHeld)) {
    found(
      'size',
      `is said to have ${has}, volume ${volume.metadata.name} ${objectHas}, and ${asset} has ${held.capacityBytes}`,
    )
  }
  // What the driver had to do is done, and the volume says so; the node may take its time.
  if (state?.startsWith('NodeResize') && objectHas !== held.capacityBytes) {
    found(
      'size',
      `waits for its node, volume ${volume.metadata.name} has ${objectHas}, and ${asset} ${held.capacityBytes}`,
    )
  }
  if (wanted <= has || isGoing(claim)) return
  const conditions = claim.status?.conditions?.filter(({ type }) => RESIZE_CONDITIONS.includes(type)) ?? []
  const events = told.about(claim.metadata.uid).filter((text) => /VolumeResizeFailed|Resiz|VolumeChange/.test(text))
  const { driver } = partsOf(asset)
  if (conditions.length === 0 && events.length === 0 && isChanged(stage, driver as DriverName)) {
    found('says not why', `asks for ${wanted}, has ${has} (${state}), and does not say why`)
  }
  const { maximumBytes, controller, pools } = settingsIn(stage, driver)
  const pool = pools.find(({ name }) => name === held.pool)
  // A size that the driver has not clearly refused is asked for until it has: a lower request counts after that.
  const tried = state === undefined ? 0 : Number(quantityToBytes(claim.status?.allocatedResources?.storage ?? '0'))
  const asked = Math.max(wanted, tried)
  const hasRoom = pool !== undefined && freeBytes(stage, driver, pool) >= (asked - held.capacityBytes) * held.copies
  const isFeasible = asked <= maximumBytes && controller.includes('EXPAND_VOLUME') && hasRoom
  if (!isFeasible || isContradictory(volume) || quiet.past.hadGatesOff) return
  const isNodesTurn = isLeftToNode || (state?.startsWith('NodeResize') ?? false)
  // Refused because it is in use, a volume is not asked for again on the node before it is mounted anew.
  const isHeldByMount = conditions.some(
    ({ type, message }) => type === 'NodeResizeError' && message?.includes('code = FailedPrecondition'),
  )
  if (isNodesTurn && (state === 'NodeResizeInfeasible' || isHeldByMount || !hasWriter())) return
  const said = [...conditions.map(({ message }) => message), ...events].at(-1)
  if (isHeldByUse(claim, said, quiet)) return
  found('could go on', `could have ${wanted}, has ${has} (${state}), and says "${said}"`)
}

/** A driver that once refused a volume in use is asked again when no pod uses it: who says so waits rightly. */
const isHeldByUse = (claim: Of<'claim'>, said: string | undefined, quiet: Quiet): boolean =>
  /currently in-use|not in use, and pods use/.test(said ?? '') && usersOf(claim, quiet).length > 0

function judgeAttributes(claim: Of<'claim'>, volume: Of<'volume'>, asset: string, quiet: Quiet, found: Found): void {
  const { stage, view, classes, told } = quiet
  const held = heldAt(stage, asset)
  if (!held) return
  const { driver } = partsOf(asset)
  const { status } = claim
  const current = classInEffect(claim)
  const progress = AMOUNTS.map((name) => status?.allocatedResourceStatuses?.[name]).filter(Boolean)
  const isUnderWay = status?.modifyVolumeStatus !== undefined || progress.length > 0
  if (!isUnderWay && undoOf(claim) === undefined) {
    const told = toldAttributes(claim, classes.of(current ?? ''))
    for (const [name, value] of Object.entries(told)) {
      const has = held.mutableParameters[name]
      if (has !== value) found('attributes', `is said to have ${name}=${value}, and ${asset} has ${has}`)
    }
    const ofVolume = volume.spec?.volumeAttributesClassName || undefined
    if (ofVolume !== current) found('attributes', `has the class ${current}, and its volume says ${ofVolume}`)
    for (const name of AMOUNTS) {
      const [own, objects] = [status?.capacity?.[name], volume.spec?.capacity?.[name]]
      if (own !== objects) found('attributes', `has ${own} ${name}, and its volume says ${objects}`)
    }
  }
  if (isGoing(claim) || quiet.past.hadGatesOff) return
  const wanted = claim.spec?.volumeAttributesClassName || current
  const isDue = (name: (typeof AMOUNTS)[number]): boolean => {
    const own = claim.spec?.resources?.requests?.[name]
    return own !== undefined && compareQuantities(own, status?.capacity?.[name] ?? '0') !== 0
  }
  if (wanted === current && !AMOUNTS.some(isDue)) {
    if (isUnderWay)
      found('attributes', `has what it wants, and is still ${status?.modifyVolumeStatus?.status} ${progress}`)
    return
  }
  const conditions = status?.conditions?.filter(({ type }) => type.startsWith('Modify')) ?? []
  const events = told.about(claim.metadata.uid).filter((text) => /VolumeModify|VolumeChange/.test(text))
  if (conditions.length + events.length === 0 && !isUnderWay && isChanged(stage, driver as DriverName)) {
    found('says not why', `wants ${wanted} and has ${current}, and does not say why`)
  }
  if (canHaveAttributes(claim, driver as DriverName, { stage, view })) {
    const said = [...conditions.map(({ message }) => message), ...events].at(-1)
    if (isHeldByUse(claim, said, quiet)) return
    found('could go on', `could have ${wanted}, has ${current}, and says "${said}"`)
  }
}

/** No resizer runs beside a driver that can change nothing: where those are apart, nobody is there to say so. */
function isChanged(stage: Stage, driver: DriverName): boolean {
  const { controller } = settingsIn(stage, driver)
  return stage.setup.home !== 'apart' || controller.includes('EXPAND_VOLUME') || controller.includes('MODIFY_VOLUME')
}

const keyOf = ({ metadata }: Of<'claim'>): string => `${metadata.namespace}/${metadata.name}`
