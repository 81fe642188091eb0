// Describes a change to a claim, a volume, an attachment, or a pod that uses claims, for its record in the journal.
// It runs for every write of these kinds, so it compares only the fields that show the lifecycle of a volume, allocates no memory, and
// the text of the changes is built only for a new template. It finds only the names of changed annotations and labels, because their
// values can be long or confidential.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { ChangeRecord } from './journal-record.ts'
import { TemplateParts } from './templates.ts'

/** The object before and after a write. `before` is undefined for a create, `after` for a removal. */
export interface ObjectChange {
  readonly before: Readonly<KubeObject> | undefined
  readonly after: Readonly<KubeObject> | undefined
}

/** A described change. It can be used again for another change, so that describing allocates nothing. */
export class DescribedChange {
  kind = ''
  verb: ChangeRecord['verb'] = 'create'
  /** The metadata after the change, or the last one. */
  metadata: AnyObject = undefined
  volume: string | undefined = undefined
  claimUid: string | undefined = undefined
  handle: string | undefined = undefined
  claims: readonly string[] | undefined = undefined
  step: StepName | undefined = undefined
  /** Whether the change sets the claim or the handle of a volume. */
  hasNewClaim = false
  /** The new value of a field that differs between most objects: the volume of a claim or an attachment. */
  ownVolume: string | undefined = undefined
  /** The new reference of a volume to its claim. */
  ownClaim: AnyObject = undefined
  /** The kind, verb, user, manager and step, then three parts for each change: a noun, and its values before and after. */
  readonly parts = new TemplateParts()
}

/** The index of the first change in the parts. */
export const CHANGES_START = 5
/** In place of the value before: the text of the change is `NOUN NAME added`, `NOUN NAME changed` or `NOUN NAME removed`. */
export const ADDED = '\u0000added'
export const CHANGED = '\u0000changed'
export const REMOVED = '\u0000removed'
/** The text of the change is the noun. */
export const ALONE = '\u0000'
/** The value is `ownVolume` or `ownClaim`. */
export const OWN_VALUE = '\u0000own'

const SELECTED_NODE = 'volume.kubernetes.io/selected-node'

/** The change that is being described, and its parts. */
let described = new DescribedChange()
let { parts } = described

interface KindDescription {
  /** Whether the journal records this change. Default: true for all changes. */
  isRecorded?(before: AnyObject | undefined, after: AnyObject | undefined): boolean
  /** Add the changes of the spec and the status. Not called if it is the same object before and after the write. */
  compareSpec(before: AnyObject | undefined, after: AnyObject): void
  compareStatus(before: AnyObject | undefined, after: AnyObject): void
  /** Sets the details and the step. */
  setDetails(object: AnyObject, before: AnyObject | undefined): void
}

const storageOf = (list: AnyObject): string | undefined => list?.storage

const conditionsOf = (conditions: AnyObject): string | undefined =>
  conditions?.length > 0
    ? conditions
        .map(({ type, status, reason }: AnyObject) => `${type}=${status}${reason ? ` (${reason})` : ''}`)
        .join(', ')
    : undefined

const CLAIM: KindDescription = {
  compareSpec(before, after) {
    compare('request', storageOf(before?.resources?.requests), storageOf(after.resources?.requests))
    compare('class', before?.storageClassName, after.storageClassName)
    compare('attributes class', before?.volumeAttributesClassName, after.volumeAttributesClassName)
    compareVolume(before?.volumeName, after.volumeName)
  },
  compareStatus(before, after) {
    compare('phase', before?.phase, after.phase)
    compare('capacity', storageOf(before?.capacity), storageOf(after.capacity))
    compare('allocated size', storageOf(before?.allocatedResources), storageOf(after.allocatedResources))
    compare('resize', storageOf(before?.allocatedResourceStatuses), storageOf(after.allocatedResourceStatuses))
    compare(
      'current attributes class',
      before?.currentVolumeAttributesClassName,
      after.currentVolumeAttributesClassName,
    )
    compare('modification', before?.modifyVolumeStatus?.status, after.modifyVolumeStatus?.status)
    compare('conditions', conditionsOf(before?.conditions), conditionsOf(after.conditions))
  },
  setDetails(claim, before) {
    described.volume = claim.spec?.volumeName || undefined
    described.step = claimStepOf(claim, before)
  },
}

const VOLUME: KindDescription = {
  compareSpec(before, after) {
    compare('capacity', storageOf(before?.capacity), storageOf(after.capacity))
    compare('class', before?.storageClassName, after.storageClassName)
    compare('attributes class', before?.volumeAttributesClassName, after.volumeAttributesClassName)
    compare('driver', before?.csi?.driver, after.csi?.driver)
    const previousClaim = before?.claimRef
    const claim = after.claimRef
    if (previousClaim?.name !== claim?.name || previousClaim?.namespace !== claim?.namespace)
      compareClaim(previousClaim, claim)
    compare('reclaim policy', before?.persistentVolumeReclaimPolicy, after.persistentVolumeReclaimPolicy)
  },
  compareStatus(before, after) {
    compare('phase', before?.phase, after.phase)
    compare('message', before?.message, after.message)
  },
  setDetails({ spec }, before) {
    const claimUid = spec?.claimRef?.uid || undefined
    const handle = spec?.csi?.volumeHandle || undefined
    described.claimUid = claimUid
    described.handle = handle
    described.step = before ? undefined : 'Provisioned'
    described.hasNewClaim =
      claimUid !== undefined && (before?.spec?.claimRef?.uid !== claimUid || before?.spec?.csi?.volumeHandle !== handle)
  },
}

export const nameOfClaim = ({ namespace, name }: AnyObject): string => `${namespace}/${name}`

const ATTACHMENT: KindDescription = {
  compareSpec(before, after) {
    compareVolume(before?.source?.persistentVolumeName, after.source?.persistentVolumeName)
    compare('node', before?.nodeName, after.nodeName)
  },
  compareStatus(before, after) {
    compare('attached', textOf(before?.attached), textOf(after.attached))
    compare('attach error', before?.attachError?.message, after.attachError?.message)
    compare('detach error', before?.detachError?.message, after.detachError?.message)
  },
  setDetails({ spec, status }, before) {
    described.volume = spec?.source?.persistentVolumeName || undefined
    described.step = status?.attached && !before?.status?.attached ? 'Attached' : undefined
  },
}

const textOf = (value: boolean | undefined): string | undefined => (value === undefined ? undefined : String(value))

/** Updates of other fields have no record, because node agents often update the status of pods. */
const POD: KindDescription = {
  isRecorded: (before, after) =>
    claimsOf(after ?? before).length > 0 && (!before || !after || hasChanges(POD, before, after)),
  compareSpec(before, after) {
    compare('node', before?.nodeName || undefined, after.nodeName || undefined)
  },
  compareStatus(before, after) {
    compare('phase', before?.phase, after.phase)
  },
  setDetails(pod, before) {
    described.claims = claimsOf(pod)
    described.step = pod.spec?.nodeName && !before?.spec?.nodeName ? 'Scheduled' : undefined
  },
}

function descriptionOf(kind: Kind): KindDescription | undefined {
  switch (kind) {
    case persistentVolumeClaimKind:
      return CLAIM
    case persistentVolumeKind:
      return VOLUME
    case volumeAttachmentKind:
      return ATTACHMENT
    case podKind:
      return POD
    default:
      return undefined
  }
}

function claimStepOf(claim: AnyObject, before: AnyObject | undefined): StepName | undefined {
  if (!before) return 'Created'
  if (claim.status?.phase === 'Bound' && before.status?.phase !== 'Bound') return 'Bound'
  const isSelected = claim.metadata.annotations?.[SELECTED_NODE] && !before.metadata.annotations?.[SELECTED_NODE]
  return isSelected ? 'Scheduled' : undefined
}

/** Returns the names of a pod's claims, including those that are created for it. */
function claimsOf({ spec, metadata }: AnyObject): string[] {
  const claims: string[] = []
  for (const { name, persistentVolumeClaim, ephemeral } of spec?.volumes ?? []) {
    if (persistentVolumeClaim?.claimName) claims.push(persistentVolumeClaim.claimName)
    else if (ephemeral) claims.push(`${metadata.name}-${name}`)
  }
  return claims
}

/** Returns false for objects of other kinds, pods without claims, and updates of pods that change no described field. */
export function isRecorded(kind: Kind, { before, after }: ObjectChange): boolean {
  const description = descriptionOf(kind)
  return description !== undefined && (description.isRecorded?.(before, after) ?? true)
}

/** Describes a recorded change. Overwrites `result`. */
export function describeChange(
  result: DescribedChange,
  { resource, user, fieldManager }: WriteTarget,
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): void {
  const { kind } = resource
  const object = after ?? before
  const description = descriptionOf(kind)!
  described = result
  parts = result.parts
  result.kind = kind.kind
  result.verb = before ? (after ? 'update' : 'delete') : 'create'
  result.metadata = object.metadata
  result.volume = undefined
  result.claimUid = undefined
  result.handle = undefined
  result.claims = undefined
  result.hasNewClaim = false
  result.ownVolume = undefined
  result.ownClaim = undefined
  description.setDetails(object, after ? before : object)
  parts.count = 0
  parts.add(result.kind)
  parts.add(result.verb)
  parts.add(user.name)
  parts.add(fieldManager)
  parts.add(result.step)
  if (after) findChanges(description, before, after)
  if (before && after && parts.count === CHANGES_START) addChange('other fields', ALONE, undefined)
}

function hasChanges(description: KindDescription, before: AnyObject, after: AnyObject): boolean {
  described = compared
  parts = compared.parts
  parts.count = 0
  findChanges(description, before, after)
  return parts.count > 0
}

const compared = new DescribedChange()

function findChanges(description: KindDescription, before: AnyObject | undefined, after: AnyObject): void {
  const previousSpec = before?.spec
  const previousStatus = before?.status
  if (after.spec !== previousSpec) description.compareSpec(previousSpec, after.spec ?? NO_FIELDS)
  if (after.status !== previousStatus) description.compareStatus(previousStatus, after.status ?? NO_FIELDS)
  const previousMeta: AnyObject = before?.metadata ?? NO_FIELDS
  const { deletionTimestamp, finalizers, annotations, labels }: AnyObject = after.metadata
  const previousAnnotations = previousMeta.annotations
  if (annotations !== previousAnnotations)
    compare('node', previousAnnotations?.[SELECTED_NODE], annotations?.[SELECTED_NODE])
  if (deletionTimestamp && !previousMeta.deletionTimestamp) addChange('marked for deletion', ALONE, undefined)
  if (finalizers !== previousMeta.finalizers) compareNames('finalizer', previousMeta.finalizers, finalizers)
  if (!before) return
  if (annotations !== previousAnnotations) compareKeys('annotation', previousAnnotations, annotations)
  if (labels !== previousMeta.labels) compareKeys('label', previousMeta.labels, labels)
}

const NO_FIELDS = {}

function addChange(noun: string, before: string | undefined, after: string | undefined): void {
  parts.add(noun)
  parts.add(before)
  parts.add(after)
}

/** Compares a field. The value undefined is an absent field. */
function compare(name: string, before: string | undefined, after: string | undefined): void {
  if (before !== after) addChange(name, before, after)
}

/** Compares a field whose values differ between most objects, so that a new value belongs to the record, not to the template. */
function compareVolume(before: string | undefined, after: string | undefined): void {
  if (before !== undefined || after === undefined) {
    compare('volume', before, after)
    return
  }
  addChange('volume', OWN_VALUE, undefined)
  described.ownVolume = after
}

/** Compares references to claims of different names, like `compareVolume`. */
function compareClaim(before: AnyObject, after: AnyObject): void {
  if (before || !after) {
    addChange('claim', before && nameOfClaim(before), after && nameOfClaim(after))
    return
  }
  addChange('claim', OWN_VALUE, undefined)
  described.ownClaim = after
}

function compareNames(noun: string, before: readonly string[] = NO_NAMES, after: readonly string[] = NO_NAMES): void {
  if (areEqual(before, after)) return
  for (const name of after) if (!before.includes(name)) addChange(noun, ADDED, name)
  for (const name of before) if (!after.includes(name)) addChange(noun, REMOVED, name)
}

const NO_NAMES: readonly string[] = []

function areEqual(before: readonly string[], after: readonly string[]): boolean {
  if (before.length !== after.length) return false
  for (let index = 0; index < after.length; index++) if (before[index] !== after[index]) return false
  return true
}

type Keys = Readonly<Record<string, string>>
const NO_KEYS: Keys = {}

/** Skips the annotation of the selected node, which is one of the compared fields. */
function compareKeys(noun: string, before: Keys = NO_KEYS, after: Keys = NO_KEYS): void {
  /** The number of keys of `before` that are not found in `after`. */
  let unmatched = 0
  for (const _ in before) unmatched++
  for (const key in after) {
    const value = after[key]
    if (before[key] === value) {
      if (value !== undefined) unmatched--
      continue
    }
    const isChanged = Object.hasOwn(before, key)
    if (isChanged) unmatched--
    if (key !== SELECTED_NODE) addChange(noun, isChanged ? CHANGED : ADDED, key)
  }
  if (unmatched === 0) return
  for (const key in before) if (key !== SELECTED_NODE && !Object.hasOwn(after, key)) addChange(noun, REMOVED, key)
}
