// Describes a change to a claim, a volume, an attachment, or a pod that uses claims, as a line of the journal. It
// runs for every write of these kinds, so it compares only the fields that show the lifecycle of a volume, and builds the line
// as text without an intermediate object. It records only the names of changed annotations and labels, because their values can
// be long or confidential.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { StepChange } from './follow-steps.ts'
import { type ChangeRecord, escapeText, quoteText } from './journal-record.ts'

/** The object before and after a write. `before` is undefined for a create, `after` for a removal. */
export interface ObjectChange {
  readonly before: Readonly<KubeObject> | undefined
  readonly after: Readonly<KubeObject> | undefined
}

export interface DescribedChange {
  /** The ChangeRecord as JSON. */
  readonly line: string
  /** The object's uid. */
  readonly owner: string
  /** Undefined if the change has no effect on the steps of a claim. */
  readonly stepChange: StepChange | undefined
}

/** Longer texts are cut, such as the message of a driver in an attachment. */
const TEXT_LENGTH_MAX = 300
/** Further changes of one write are omitted. */
const CHANGES_MAX = 20
const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
/** Escaped, because text that contains only ASCII is encoded several times faster. */
const ARROW = '\\u2192'

/** Reads a field of the spec, the status or the annotations. The value undefined is an absent field. */
type ReadField = (part: AnyObject) => string | undefined

interface KindDescription {
  /** Whether the journal records changes to this object. Default: true for all objects. */
  isJournaled?(object: AnyObject): boolean
  /** Whether an update that changes none of these fields is omitted from the journal. */
  readonly omitsOtherFields?: true
  /** The fields that are compared, by their names in the texts. */
  readonly spec: readonly (readonly [name: string, read: ReadField])[]
  readonly status: readonly (readonly [name: string, read: ReadField])[]
  detailsOf(object: AnyObject, before: AnyObject | undefined): Details
}

type Details = Pick<ChangeRecord, 'volume' | 'claimUid' | 'handle' | 'claims' | 'step'>

const storageOf = (list: AnyObject): string | undefined => list?.storage

const conditionsOf = (conditions: AnyObject): string | undefined =>
  conditions?.length > 0
    ? conditions
        .map(({ type, status, reason }: AnyObject) => `${type}=${status}${reason ? ` (${reason})` : ''}`)
        .join(', ')
    : undefined

const CLAIM: KindDescription = {
  spec: [
    ['request', (spec) => storageOf(spec.resources?.requests)],
    ['class', (spec) => spec.storageClassName],
    ['attributes class', (spec) => spec.volumeAttributesClassName],
    ['volume', (spec) => spec.volumeName],
  ],
  status: [
    ['phase', (status) => status.phase],
    ['capacity', (status) => storageOf(status.capacity)],
    ['allocated size', (status) => storageOf(status.allocatedResources)],
    ['resize', (status) => storageOf(status.allocatedResourceStatuses)],
    ['current attributes class', (status) => status.currentVolumeAttributesClassName],
    ['modification', (status) => status.modifyVolumeStatus?.status],
    ['conditions', (status) => conditionsOf(status.conditions)],
  ],
  detailsOf: (claim, before) => ({ volume: claim.spec?.volumeName || undefined, step: claimStepOf(claim, before) }),
}

const VOLUME: KindDescription = {
  spec: [
    ['capacity', (spec) => storageOf(spec.capacity)],
    ['class', (spec) => spec.storageClassName],
    ['attributes class', (spec) => spec.volumeAttributesClassName],
    ['driver', (spec) => spec.csi?.driver],
    ['claim', ({ claimRef }) => (claimRef ? `${claimRef.namespace}/${claimRef.name}` : undefined)],
    ['reclaim policy', (spec) => spec.persistentVolumeReclaimPolicy],
  ],
  status: [
    ['phase', (status) => status.phase],
    ['message', (status) => status.message],
  ],
  detailsOf: ({ spec }, before) => ({
    claimUid: spec?.claimRef?.uid || undefined,
    handle: spec?.csi?.volumeHandle || undefined,
    step: before ? undefined : 'Provisioned',
  }),
}

const ATTACHMENT: KindDescription = {
  spec: [
    ['volume', (spec) => spec.source?.persistentVolumeName],
    ['node', (spec) => spec.nodeName],
  ],
  status: [
    ['attached', ({ attached }) => (attached === undefined ? undefined : String(attached))],
    ['attach error', (status) => status.attachError?.message],
    ['detach error', (status) => status.detachError?.message],
  ],
  detailsOf: ({ spec, status }, before) => ({
    volume: spec?.source?.persistentVolumeName || undefined,
    step: status?.attached && !before?.status?.attached ? 'Attached' : undefined,
  }),
}

/** Omits updates of other fields, because node agents often update the status of pods. */
const POD: KindDescription = {
  isJournaled: (pod) => claimsOf(pod).length > 0,
  omitsOtherFields: true,
  spec: [['node', (spec) => spec.nodeName || undefined]],
  status: [['phase', (status) => status.phase]],
  detailsOf: (pod, before) => ({
    claims: claimsOf(pod),
    step: pod.spec?.nodeName && !before?.spec?.nodeName ? 'Scheduled' : undefined,
  }),
}

const DESCRIPTIONS: ReadonlyMap<Kind, KindDescription> = new Map<Kind, KindDescription>([
  [persistentVolumeClaimKind, CLAIM],
  [persistentVolumeKind, VOLUME],
  [volumeAttachmentKind, ATTACHMENT],
  [podKind, POD],
])

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

export const isJournaledKind = (kind: Kind): boolean => DESCRIPTIONS.has(kind)

/** Returns undefined for objects of other kinds, pods without claims, and updates of pods that change neither node nor phase. */
export function describeChange(target: WriteTarget, change: ObjectChange, atMs: number): DescribedChange | undefined {
  const { kind } = target.resource
  const description = DESCRIPTIONS.get(kind)
  const { before, after } = change
  const object: AnyObject = after ?? before
  if (!description || !object || (description.isJournaled && !description.isJournaled(object))) return undefined
  const changes = after ? changesOf(description, before, after) : NO_CHANGES
  if (before && after && changes.length === 0) {
    if (description.omitsOtherFields) return undefined
    changes.push('"other fields"')
  }
  const { name = '', namespace, uid = '' } = object.metadata
  const verb = before ? (after ? 'update' : 'delete') : 'create'
  const details = description.detailsOf(object, after ? before : object)
  const { volume, claimUid, handle, claims, step } = details
  let line = `{"atMs":${atMs},"kind":"${kind.kind}"`
  if (namespace) line += `,"namespace":${quoteText(namespace)}`
  line += `,"name":${quoteText(name)},"uid":${quoteText(uid)},"verb":"${verb}","user":${quoteText(target.user.name)}`
  if (target.fieldManager) line += `,"manager":${quoteText(target.fieldManager)}`
  line += `,"changes":[${changes.length > CHANGES_MAX ? changes.slice(0, CHANGES_MAX).join() : changes.join()}]`
  if (volume) line += `,"volume":${quoteText(volume)}`
  if (claimUid) line += `,"claimUid":${quoteText(claimUid)}`
  if (handle) line += `,"handle":${quoteText(handle)}`
  if (claims) line += `,"claims":${JSON.stringify(claims)}`
  if (step) line += `,"step":"${step}"`
  line += '}'
  const hasEffectOnSteps = step || !after || (claimUid && hasNewClaim(before, details))
  const stepChange: StepChange | undefined = hasEffectOnSteps
    ? { atMs, kind: kind.kind, namespace, name, uid, verb, volume, claimUid, handle, claims, step }
    : undefined
  return { line, owner: uid, stepChange }
}

const NO_CHANGES: string[] = []

function hasNewClaim(before: AnyObject, { claimUid, handle }: Details): boolean {
  return before?.spec?.claimRef?.uid !== claimUid || before?.spec?.csi?.volumeHandle !== handle
}

/** Returns the texts of the changes as JSON strings. */
function changesOf(description: KindDescription, before: AnyObject | undefined, after: AnyObject): string[] {
  const changes: string[] = []
  addFields(changes, description.spec, before?.spec, after.spec)
  addFields(changes, description.status, before?.status, after.status)
  const previousMeta: AnyObject = before?.metadata ?? NO_METADATA
  const { deletionTimestamp, finalizers, annotations, labels }: AnyObject = after.metadata
  const hasNewAnnotations = annotations !== previousMeta.annotations
  if (hasNewAnnotations)
    addChange(changes, 'node', previousMeta.annotations?.[SELECTED_NODE], annotations?.[SELECTED_NODE])
  if (deletionTimestamp && !previousMeta.deletionTimestamp) changes.push('"marked for deletion"')
  if (finalizers !== previousMeta.finalizers)
    addNames(changes, 'finalizer', namesOf(previousMeta.finalizers), namesOf(finalizers))
  if (!before) return changes
  if (hasNewAnnotations) addKeys(changes, 'annotation', previousMeta.annotations, annotations)
  if (labels !== previousMeta.labels) addKeys(changes, 'label', previousMeta.labels, labels)
  return changes
}

const NO_METADATA = {}

/** Skips a part that is the same object before and after the update. */
function addFields(
  changes: string[],
  fields: KindDescription['spec'],
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): void {
  if (before === after) return
  for (const [name, read] of fields) addChange(changes, name, before && read(before), after && read(after))
}

function addChange(changes: string[], field: string, before: string | undefined, after: string | undefined): void {
  if (before === after) return
  if (after === undefined) changes.push(`"${field} removed"`)
  else if (before === undefined) changes.push(`"${field} ${cut(after)}"`)
  else changes.push(`"${field} ${cut(before)} ${ARROW} ${cut(after)}"`)
}

const cut = (text: string): string =>
  escapeText(text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text)

const namesOf = (finalizers: readonly string[] | undefined): readonly string[] => finalizers ?? []

function addNames(changes: string[], noun: string, before: readonly string[], after: readonly string[]): void {
  for (const name of after) if (!before.includes(name)) changes.push(`"${noun} ${escapeText(name)} added"`)
  for (const name of before) if (!after.includes(name)) changes.push(`"${noun} ${escapeText(name)} removed"`)
}

type Keys = Readonly<Record<string, string>> | undefined

/** Skips the annotation of the selected node, which is one of the compared fields. */
function addKeys(changes: string[], noun: string, before: Keys = {}, after: Keys = {}): void {
  for (const key in after) {
    if (key === SELECTED_NODE || before[key] === after[key]) continue
    changes.push(`"${noun} ${escapeText(key)} ${key in before ? 'changed' : 'added'}"`)
  }
  for (const key in before)
    if (key !== SELECTED_NODE && !(key in after)) changes.push(`"${noun} ${escapeText(key)} removed"`)
}
