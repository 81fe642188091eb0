// Checks claims at rest: each one is bound and has the requested size and attributes, or reports a reason why not, and its
// status matches the driver's volume.

import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { claimClassName, volumeClassName } from '../../../api/kinds/shared/class-names.ts'
import { compareQuantities, quantityToBytes } from '../../../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../../api/selectors.ts'
import { CLAIM_PROTECTION_FINALIZER, SELECTED_NODE } from '../../../volumes/names.ts'
import { INTENT_PREFIX } from '../../../volumes/provisioning-intent.ts'
import type { System } from '../../engine/system.ts'
import { assetOf, type ObjectOf } from '../../engine/view.ts'
import { DRIVERS, type DriverName } from '../../plan/catalog.ts'
import { ATTRIBUTES, type Attributes, classInEffect, reportedAttributes, undoOf } from '../attributes.ts'
import {
  claimsOf,
  findDriverVolume,
  isContradictory,
  isDeleting,
  isOwnedBy,
  listAssets,
  type Problem,
  parseAsset,
} from '../context.ts'
import {
  canCreate,
  canHaveAttributes,
  driverOf,
  freeBytes,
  hasResizer,
  isUnreachable,
  requestOf,
  settingsIn,
} from '../feasibility.ts'
import { chargeOf } from '../sizes.ts'
import type { AtRestContext } from './index.ts'

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'
const CLONE_FINALIZER = 'provisioner.storage.kubernetes.io/cloning-protection'
const RESIZE_CONDITIONS = ['ControllerResizeError', 'NodeResizeError', 'FileSystemResizePending']
const AMOUNTS = ['iops', 'throughput'] as const

type Report = (rule: Problem['rule'], text: string) => void

export function findClaimProblems(claim: ObjectOf<'claim'>, context: AtRestContext): Problem[] {
  const problems: Problem[] = []
  const report: Report = (rule, text) => void problems.push({ rule, text: `claim ${keyOf(claim)} ${text}` })
  checkFinalizers(claim, context, report)
  switch (claim.status?.phase) {
    case 'Bound':
      checkBound(claim, context, report)
      break
    case 'Lost':
      if (context.events.about(claim.metadata.uid).length === 0)
        report('no reason', 'is Lost without an event that reports it')
      if (volumeOf(claim, context)) report('needless wait', 'is Lost, but its volume exists')
      break
    default:
      if (!isDeleting(claim)) checkPending(claim, context, report)
  }
  return problems
}

/** Checks the finalizers and the owner of a claim. */
function checkFinalizers(claim: ObjectOf<'claim'>, context: AtRestContext, report: Report): void {
  const { view, events } = context
  const { finalizers = [], uid, namespace, name, ownerReferences = [] } = claim.metadata
  // A pod that has terminated protects its claims until it is deleted, because its volumes may still be mounted.
  const pods = listPodsReferringTo(claim, context)
  const isCopied = [...view.claims.values()].some(
    ({ metadata, spec }) => metadata.namespace === namespace && spec?.dataSource?.name === name && !spec?.volumeName,
  )
  const isNeeded: Readonly<Record<string, boolean>> = {
    [CLAIM_PROTECTION_FINALIZER]: pods.some(({ spec }) => spec?.nodeName),
    [CLONE_FINALIZER]: isCopied,
  }
  for (const finalizer of finalizers) {
    const isIntent = finalizer.startsWith(INTENT_PREFIX)
    if (isIntent && claim.spec?.volumeName)
      report('finalizers', `has a volume, but still has the finalizer ${finalizer}`)
    // The cloning protection stays on a source claim for the next clone; only a deleted claim loses it.
    if (!isDeleting(claim)) continue
    if (isIntent && events.about(uid).length === 0)
      report('no reason', 'is being deleted without an event that states the reason')
    if (isNeeded[finalizer] === false) report('not deleted', `is stuck in deletion, held by ${finalizer}`)
  }
  if (isDeleting(claim) && finalizers.length === 0) report('not deleted', 'is stuck in deletion without a finalizer')
  const owner = ownerReferences.find(({ kind }) => kind === 'Pod')
  if (owner && !isDeleting(claim) && ![...view.pods.values()].some(({ metadata }) => metadata.uid === owner.uid)) {
    report('not deleted', `is owned by pod ${owner.name}, which no longer exists`)
  }
}

const listPodsUsing = (claim: ObjectOf<'claim'>, context: AtRestContext): ObjectOf<'pod'>[] =>
  listPodsReferringTo(claim, context).filter((pod) => !hasTerminated(pod))

const listPodsReferringTo = (claim: ObjectOf<'claim'>, { view }: AtRestContext): ObjectOf<'pod'>[] =>
  [...view.pods.values()].filter((pod) => claimsOf(pod, view).some(({ key }) => key === keyOf(claim)))

/** Returns the registered node of a pod that uses the claim. */
const nodeOfConsumer = (claim: ObjectOf<'claim'>, context: AtRestContext): string | undefined =>
  listPodsUsing(claim, context)
    .filter((pod) => !isDeleting(pod) && mayUse(pod, claim, context))
    .map(({ spec }) => spec?.nodeName ?? '')
    .find((name) => context.view.nodes.has(name))

/** Whether the pod may use the claim. The claim of an ephemeral volume must have been created for this pod. */
const mayUse = (pod: ObjectOf<'pod'>, claim: ObjectOf<'claim'>, { view }: AtRestContext): boolean =>
  claimsOf(pod, view).some(({ key, isEphemeral }) => key === keyOf(claim) && (!isEphemeral || isOwnedBy(pod, claim)))

const volumeOf = ({ metadata, spec }: ObjectOf<'claim'>, { view }: AtRestContext): ObjectOf<'volume'> | undefined => {
  const volume = view.volumes.get(spec?.volumeName ?? '')
  return volume?.spec?.claimRef?.uid === metadata.uid ? volume : undefined
}

function checkPending(claim: ObjectOf<'claim'>, context: AtRestContext, report: Report): void {
  const { view, events, system } = context
  const messages = events.about(claim.metadata.uid)
  if (messages.length === 0) report('no reason', 'is Pending without an event that states the reason')
  const isNamespaceDeleting = view.namespaces.get(claim.metadata.namespace ?? '')?.metadata.deletionTimestamp
  if (isNamespaceDeleting || context.exemptions.hadGatesOff) return
  const className = claimClassName(claim)
  const storageClass = view.classes.get(className ?? '')
  const isDefault = ({ metadata }: ObjectOf<'class'>) => metadata.annotations?.[DEFAULT_CLASS] === 'true'
  const explanation = `its last event is "${messages.at(-1) ?? 'none'}"`
  const defaultClasses =
    className === undefined && !claim.spec?.volumeName ? [...view.classes.values()].filter(isDefault) : []
  // The newest default class is assigned, unless a quota of that class cannot admit the claim.
  if (
    defaultClasses.length > 0 &&
    !defaultClasses.some(({ metadata }) => isOverQuota(claim, metadata.name ?? '', context))
  ) {
    report('needless wait', `has no class, although there is a default class: ${explanation}`)
  }
  const node = claim.metadata.annotations?.[SELECTED_NODE]
  if (node && isConfirmedOff(view.nodes.get(node)))
    report('needless wait', `waits for a volume on ${node}, which is lost: ${explanation}`)
  // The driver has the volume of an unanswered call on a node that is off, and can neither use nor delete it.
  const isCreatedOnLostNode = [...listAssets(system)].some(
    ({ asset, driverVolume }) => driverVolume.name === `pvc-${claim.metadata.uid}` && isUnreachable(system, asset),
  )
  if (isCreatedOnLostNode) return
  const isWaiting = storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && !node
  if (isWaiting) {
    // A pod that bypasses the scheduler has a node; any other pod states what it waits for.
    const podNode = nodeOfConsumer(claim, context)
    if (podNode && canCreate(claim, storageClass, { system, view }, podNode))
      report('needless wait', `could get a volume on ${podNode}, the node of its pod: ${explanation}`)
    return
  }
  const volume = [...view.volumes.values()].find((candidate) => canSatisfy(candidate, claim))
  if (volume) report('needless wait', `could bind to volume ${volume.metadata.name}: ${explanation}`)
  else if (storageClass && canCreate(claim, storageClass, { system, view }, node)) {
    report('needless wait', `could get a volume from ${driverOf(storageClass)}: ${explanation}`)
  }
}

/** Whether a quota of its namespace limits the claims of a class and cannot admit this one. */
function isOverQuota(claim: ObjectOf<'claim'>, className: string, { view }: AtRestContext): boolean {
  const amounts = { 'requests.storage': BigInt(requestOf(claim)), persistentvolumeclaims: 1n }
  return [...view.quotas.values()].some(
    ({ metadata, spec, status }) =>
      metadata.namespace === claim.metadata.namespace &&
      Object.entries(amounts).some(([resource, amount]) => {
        const key = `${className}.storageclass.storage.k8s.io/${resource}`
        const hard = spec?.hard?.[key]
        return hard !== undefined && quantityToBytes(status?.used?.[key] ?? '0') + amount > quantityToBytes(hard)
      }),
  )
}

/** Whether a free volume satisfies the claim; independent of the binder's own matching. */
function canSatisfy({ metadata, spec, status }: ObjectOf<'volume'>, claim: ObjectOf<'claim'>): boolean {
  const claimSpec = claim.spec ?? {}
  const { claimRef } = spec ?? {}
  const isReserved = claimRef && `${claimRef.namespace}/${claimRef.name}` === keyOf(claim) && !claimRef.uid
  return (
    status?.phase === 'Available' &&
    (!claimRef || isReserved === true) &&
    !metadata.deletionTimestamp &&
    (!claimSpec.volumeName || claimSpec.volumeName === metadata.name) &&
    volumeClassName({ metadata, spec }) === (claimClassName(claim) ?? '') &&
    (spec?.volumeMode ?? 'Filesystem') === (claimSpec.volumeMode ?? 'Filesystem') &&
    (spec?.volumeAttributesClassName || '') === (claimSpec.volumeAttributesClassName || '') &&
    compareQuantities(spec?.capacity?.storage ?? '0', claimSpec.resources?.requests?.storage ?? '0') >= 0 &&
    (claimSpec.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode)) &&
    (!claimSpec.selector || matchesLabels(labelSelectorFromObject(claimSpec.selector), metadata.labels))
  )
}

function checkBound(claim: ObjectOf<'claim'>, context: AtRestContext, report: Report): void {
  const volume = volumeOf(claim, context)
  if (!volume) {
    report('needless wait', `is Bound, but volume ${claim.spec?.volumeName} belongs to another claim`)
    return
  }
  if (volume.status?.phase !== 'Bound') report('needless wait', `is Bound, but its volume is ${volume.status?.phase}`)
  const asset = assetOf(volume)
  const { driver } = parseAsset(asset ?? '')
  // A volume that its driver lost cannot be changed; volumes of other drivers cannot be inspected.
  if (!asset || !DRIVERS.includes(driver) || context.exemptions.isLost(asset)) return
  if (isUnreachable(context.system, asset)) return
  checkSize(claim, volume, asset, context, report)
  checkAttributes(claim, volume, asset, context, report)
}

function checkSize(
  claim: ObjectOf<'claim'>,
  volume: ObjectOf<'volume'>,
  asset: string,
  context: AtRestContext,
  report: Report,
): void {
  const { system, events } = context
  const driverVolume = findDriverVolume(system, asset)
  const reportedBytes = Number(quantityToBytes(claim.status?.capacity?.storage ?? '0'))
  const volumeBytes = Number(quantityToBytes(volume.spec?.capacity?.storage ?? '0'))
  const requestedBytes = requestOf(claim)
  const state = claim.status?.allocatedResourceStatuses?.storage
  if (!driverVolume) return
  // NodeExpandVolume waits for a running pod that may write.
  const hasWriter = (): boolean =>
    listPodsUsing(claim, context).some(({ status, spec }) => {
      const isReadOnly = spec?.volumes?.some(({ persistentVolumeClaim: source }) => source?.readOnly)
      return status?.phase === 'Running' && !isReadOnly
    })
  // The previous claim of a retained volume may have been deleted between the controller's and the node's part of an expansion.
  const isPending = claim.status?.conditions?.some(({ type }) => type === 'FileSystemResizePending')
  const isLeftToNode = state === undefined && isPending === true && volumeBytes === driverVolume.capacityBytes
  const isWaitingForPod = isLeftToNode && (isDeleting(claim) || !hasWriter())
  const mayBeLarger = context.exemptions.mayHaveGrownBefore(asset, claim.metadata.uid ?? '')
  const hasReportedSize =
    reportedBytes === driverVolume.capacityBytes || (mayBeLarger && reportedBytes < driverVolume.capacityBytes)
  if (state === undefined && !isWaitingForPod && (reportedBytes !== volumeBytes || !hasReportedSize)) {
    report(
      'size',
      `reports ${reportedBytes}, volume ${volume.metadata.name} records ${volumeBytes}, but ${asset} has ${driverVolume.capacityBytes}`,
    )
  }
  // The controller's part is complete, so the volume states the new size; the node's part may take longer.
  if (state?.startsWith('NodeResize') && volumeBytes !== driverVolume.capacityBytes) {
    report(
      'size',
      `waits for NodeExpandVolume, volume ${volume.metadata.name} records ${volumeBytes}, but ${asset} has ${driverVolume.capacityBytes}`,
    )
  }
  const conditions = claim.status?.conditions?.filter(({ type }) => RESIZE_CONDITIONS.includes(type)) ?? []
  const isSettled =
    state === undefined && !isLeftToNode && requestedBytes <= reportedBytes && !context.exemptions.hadGatesOff
  if (isSettled && conditions.length > 0) {
    report('size', `has the size it requests, but still has ${conditions.map(({ type }) => type).join(', ')}`)
  }
  const chargedBytes = Number(chargeOf(claim))
  if (isSettled && system.setup.expansionQuota === 'actual' && chargedBytes > Math.max(reportedBytes, requestedBytes)) {
    report('charge', `is charged ${chargedBytes}, requests ${requestedBytes} and has ${reportedBytes}`)
  }
  if (isDeleting(claim)) return
  // A lowered request replaces the earlier target even if the driver never answered it.
  const allocatedBytes = Number(quantityToBytes(claim.status?.allocatedResources?.storage ?? '0'))
  const isOutdated =
    (state?.startsWith('ControllerResize') ?? false) && allocatedBytes > Math.max(requestedBytes, volumeBytes)
  if (isOutdated && !context.exemptions.hadGatesOff && hasResizer(system, parseAsset(asset).driver as DriverName)) {
    report('size', `requests ${requestedBytes}, but its status still requests ${allocatedBytes} (${state})`)
  }
  if (requestedBytes <= reportedBytes) return
  const messages = events.about(claim.metadata.uid).filter((text) => /VolumeResizeFailed|Resiz|VolumeChange/.test(text))
  const { driver } = parseAsset(asset)
  if (conditions.length === 0 && messages.length === 0 && hasResizer(system, driver as DriverName)) {
    report('no reason', `requests ${requestedBytes}, has ${reportedBytes} (${state}), and reports no reason`)
  }
  const { maximumBytes, controller, pools } = settingsIn(system, driver)
  const pool = pools.find(({ name }) => name === driverVolume.pool)
  const hasCapacity =
    pool !== undefined &&
    freeBytes(system, driver, pool) >= (requestedBytes - driverVolume.capacityBytes) * driverVolume.copies
  const isFeasible = requestedBytes <= maximumBytes && controller.includes('EXPAND_VOLUME') && hasCapacity
  if (!isFeasible || isContradictory(volume) || context.exemptions.hadGatesOff) return
  const isWaitingForNode = isLeftToNode || (state?.startsWith('NodeResize') ?? false)
  // After FailedPrecondition the node agent retries only when the volume is mounted again.
  const isHeldByMount = conditions.some(
    ({ type, message }) => type === 'NodeResizeError' && message?.includes('code = FailedPrecondition'),
  )
  if (isWaitingForNode && (state === 'NodeResizeInfeasible' || isHeldByMount || !hasWriter())) return
  const reason = [...conditions.map(({ message }) => message), ...messages].at(-1)
  if (isHeldByUse(claim, reason, context)) return
  report('needless wait', `could have ${requestedBytes}, has ${reportedBytes} (${state}), but reports "${reason}"`)
}

/** Whether the driver rejected the change because the volume is in use. It is called again when no pod uses the volume. */
const isHeldByUse = (claim: ObjectOf<'claim'>, message: string | undefined, context: AtRestContext): boolean =>
  /currently in-use|not in use, but pods use/.test(message ?? '') && listPodsUsing(claim, context).length > 0

function checkAttributes(
  claim: ObjectOf<'claim'>,
  volume: ObjectOf<'volume'>,
  asset: string,
  context: AtRestContext,
  report: Report,
): void {
  const { system, view, classes, events, exemptions } = context
  const driverVolume = findDriverVolume(system, asset)
  if (!driverVolume) return
  const { driver } = parseAsset(asset)
  const { status } = claim
  const currentClass = classInEffect(claim)
  const progress = AMOUNTS.map((name) => status?.allocatedResourceStatuses?.[name]).filter(Boolean)
  const isInProgress = status?.modifyVolumeStatus !== undefined || progress.length > 0
  if (!isInProgress && undoOf(claim) === undefined) {
    for (const [name, value] of Object.entries(reportedAttributes(claim, classes.of(currentClass ?? '')))) {
      const actual = driverVolume.mutableParameters[name]
      if (actual !== value) report('attributes', `reports ${name}=${value}, but ${asset} has ${actual}`)
    }
    checkExpectedAttributes(asset, driverVolume.mutableParameters, context, report)
    const volumeClass = volume.spec?.volumeAttributesClassName || undefined
    if (volumeClass !== currentClass)
      report('attributes', `reports the class ${currentClass}, but its volume has ${volumeClass}`)
    for (const name of AMOUNTS) {
      const claimAmount = status?.capacity?.[name]
      const volumeAmount = volume.spec?.capacity?.[name]
      if (claimAmount !== volumeAmount)
        report('attributes', `reports ${claimAmount} ${name}, but its volume records ${volumeAmount}`)
    }
  }
  if (isDeleting(claim) || exemptions.hadGatesOff) return
  const recordedAttributes: Attributes = JSON.parse(volume.metadata.annotations?.[ATTRIBUTES] ?? '{}').attributes ?? {}
  for (const [name, value] of Object.entries(isInProgress ? {} : recordedAttributes)) {
    const actual = driverVolume.mutableParameters[name]
    if (actual !== value) report('attributes', `has a volume that records ${name}=${value}, but ${asset} has ${actual}`)
  }
  const requestedClass = claim.spec?.volumeAttributesClassName || currentClass
  // A rollback without known previous values leaves a condition that reports it. The attributes are then uncertain.
  const isExplained = context.expectedAttributes.of(asset).uncertainNames.size > 0
  const conditions = (status?.conditions ?? []).filter(
    ({ type, reason }) => type.startsWith('Modify') && !(isExplained && reason === 'PreviousValueUnknown'),
  )
  const isDue = (name: (typeof AMOUNTS)[number]): boolean => {
    const requestedAmount = claim.spec?.resources?.requests?.[name]
    return requestedAmount !== undefined && compareQuantities(requestedAmount, status?.capacity?.[name] ?? '0') !== 0
  }
  if (requestedClass === currentClass && !AMOUNTS.some(isDue)) {
    if (isInProgress)
      report('attributes', `has what it requests, but is still ${status?.modifyVolumeStatus?.status} ${progress}`)
    else if (conditions.length > 0)
      report('attributes', `has what it requests, but still has ${conditions.map(({ type }) => type).join(', ')}`)
    else if (undoOf(claim) !== undefined) report('attributes', 'has what it requests, but still records an undo')
    return
  }
  const messages = events.about(claim.metadata.uid).filter((text) => /VolumeModify|VolumeChange/.test(text))
  if (conditions.length + messages.length === 0 && !isInProgress && hasResizer(system, driver as DriverName)) {
    report('no reason', `requests ${requestedClass}, has ${currentClass}, and reports no reason`)
  }
  const state = status?.modifyVolumeStatus?.status
  const expectedState =
    requestedClass === currentClass
      ? undefined
      : expectStateOfUnusableClass(requestedClass ?? '', driver as DriverName, context)
  if (expectedState && state !== expectedState && hasModify(system, driver as DriverName)) {
    report('attributes', `should be ${expectedState} for ${requestedClass}, but is ${state}`)
  }
  if (canHaveAttributes(claim, driver as DriverName, { system, view })) {
    const reason = [...conditions.map(({ message }) => message), ...messages].at(-1)
    if (isHeldByUse(claim, reason, context)) return
    report('needless wait', `could have ${requestedClass}, has ${currentClass}, but reports "${reason}"`)
  }
}

/** Checks that the driver's volume has the attributes that all statuses together determine. */
function checkExpectedAttributes(
  asset: string,
  actualAttributes: Attributes,
  { expectedAttributes, exemptions }: AtRestContext,
  report: Report,
): void {
  if (exemptions.hadGatesOff) return
  const { attributes, uncertainNames } = expectedAttributes.of(asset)
  for (const name of new Set([...Object.keys(actualAttributes), ...Object.keys(attributes)])) {
    if (uncertainNames.has(name) || actualAttributes[name] === attributes[name]) continue
    report(
      'attributes',
      `should have ${name}=${attributes[name]} according to its statuses, but ${asset} has ${actualAttributes[name]}`,
    )
  }
}

/** Returns the expected status of a change to a class that is missing, is for another driver, or has unknown parameters. */
function expectStateOfUnusableClass(
  className: string,
  driver: DriverName,
  { view, system }: AtRestContext,
): string | undefined {
  const attributesClass = view.attributesClasses.get(className)
  if (!attributesClass) return 'Pending'
  if (attributesClass.driverName !== driver) return 'Infeasible'
  const { mutableKeys } = settingsIn(system, driver)
  return Object.keys(attributesClass.parameters ?? {}).every((key) => mutableKeys.includes(key))
    ? undefined
    : 'Infeasible'
}

const hasModify = (system: System, driver: DriverName): boolean =>
  settingsIn(system, driver).controller.includes('MODIFY_VOLUME')

const keyOf = ({ metadata }: ObjectOf<'claim'>): string => `${metadata.namespace}/${metadata.name}`
