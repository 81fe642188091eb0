// Describes a change to a claim, a volume, an attachment, or a pod that uses claims, as a line of the journal:
//   ["UID",TEMPLATE,TIME,"NAMESPACE","NAME",{DETAILS}]
// It runs for every write of these kinds, so it compares only the fields that show the lifecycle of a volume, and builds the text of
// their changes only for a new template. It records only the names of changed annotations and labels, because their values can be
// long or confidential.
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
import type { Template, TemplateParts, Templates } from './templates.ts'

/** The object before and after a write. `before` is undefined for a create, `after` for a removal. */
export interface ObjectChange {
  readonly before: Readonly<KubeObject> | undefined
  readonly after: Readonly<KubeObject> | undefined
}

export interface DescribedChange {
  readonly template: Template
  /** The line without the number of the template, which is between these two parts. */
  readonly head: string
  readonly tail: string
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
  /** Whether the journal records this change. Default: true for all changes. */
  isRecorded?(before: AnyObject | undefined, after: AnyObject | undefined): boolean
  /** The fields that are compared. */
  readonly spec: readonly ComparedField[]
  readonly status: readonly ComparedField[]
  detailsOf(object: AnyObject, before: AnyObject | undefined): Details
}

interface ComparedField {
  /** The name in the texts. */
  readonly name: string
  readonly read: ReadField
  /** Whether the values differ between most objects, so that they belong to the record, not to the template. */
  readonly isOwn: boolean
}

const field = (name: string, read: ReadField): ComparedField => ({ name, read, isOwn: false })
const ownField = (name: string, read: ReadField): ComparedField => ({ name, read, isOwn: true })

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
    field('request', (spec) => storageOf(spec.resources?.requests)),
    field('class', (spec) => spec.storageClassName),
    field('attributes class', (spec) => spec.volumeAttributesClassName),
    ownField('volume', (spec) => spec.volumeName),
  ],
  status: [
    field('phase', (status) => status.phase),
    field('capacity', (status) => storageOf(status.capacity)),
    field('allocated size', (status) => storageOf(status.allocatedResources)),
    field('resize', (status) => storageOf(status.allocatedResourceStatuses)),
    field('current attributes class', (status) => status.currentVolumeAttributesClassName),
    field('modification', (status) => status.modifyVolumeStatus?.status),
    field('conditions', (status) => conditionsOf(status.conditions)),
  ],
  detailsOf: (claim, before) => ({ volume: claim.spec?.volumeName || undefined, step: claimStepOf(claim, before) }),
}

const VOLUME: KindDescription = {
  spec: [
    field('capacity', (spec) => storageOf(spec.capacity)),
    field('class', (spec) => spec.storageClassName),
    field('attributes class', (spec) => spec.volumeAttributesClassName),
    field('driver', (spec) => spec.csi?.driver),
    ownField('claim', ({ claimRef }) => (claimRef ? `${claimRef.namespace}/${claimRef.name}` : undefined)),
    field('reclaim policy', (spec) => spec.persistentVolumeReclaimPolicy),
  ],
  status: [field('phase', (status) => status.phase), field('message', (status) => status.message)],
  detailsOf: ({ spec }, before) => ({
    claimUid: spec?.claimRef?.uid || undefined,
    handle: spec?.csi?.volumeHandle || undefined,
    step: before ? undefined : 'Provisioned',
  }),
}

const ATTACHMENT: KindDescription = {
  spec: [ownField('volume', (spec) => spec.source?.persistentVolumeName), field('node', (spec) => spec.nodeName)],
  status: [
    field('attached', ({ attached }) => (attached === undefined ? undefined : String(attached))),
    field('attach error', (status) => status.attachError?.message),
    field('detach error', (status) => status.detachError?.message),
  ],
  detailsOf: ({ spec, status }, before) => ({
    volume: spec?.source?.persistentVolumeName || undefined,
    step: status?.attached && !before?.status?.attached ? 'Attached' : undefined,
  }),
}

/** Updates of other fields have no record, because node agents often update the status of pods. */
const POD: KindDescription = {
  isRecorded: (before, after) =>
    claimsOf(after ?? before).length > 0 && (!before || !after || hasChanges(POD, before, after)),
  spec: [field('node', (spec) => spec.nodeName || undefined)],
  status: [field('phase', (status) => status.phase)],
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

/** Returns false for objects of other kinds, pods without claims, and updates of pods that change no described field. */
export function isRecorded(kind: Kind, { before, after }: ObjectChange): boolean {
  const description = DESCRIPTIONS.get(kind)
  return description !== undefined && (description.isRecorded?.(before, after) ?? true)
}

/** Describes a recorded change. */
export function describeChange(
  target: WriteTarget,
  change: ObjectChange,
  atMs: number,
  templates: Templates,
): DescribedChange {
  const { kind } = target.resource
  const description = DESCRIPTIONS.get(kind)!
  const { before, after } = change
  const object: AnyObject = after ?? before
  const verb = before ? (after ? 'update' : 'delete') : 'create'
  const details = description.detailsOf(object, after ? before : object)
  const { volume, claimUid, handle, claims, step } = details
  found.parts.length = 0
  found.values = ''
  found.parts.push(kind.kind, verb, target.user.name, target.fieldManager, step)
  if (after) findChanges(description, before, after)
  if (before && after && found.parts.length === CHANGES_START) addText('other fields')
  const { name = '', namespace = '', uid = '' } = object.metadata
  // Names of these kinds are validated, and the server generates uids: neither contains characters that JSON escapes.
  let tail = `,${timeText(atMs)},"${namespace}","${name}"`
  if (volume || claimUid || handle || claims || found.values !== '') tail += detailsText(details)
  tail += ']'
  const hasEffectOnSteps = step || !after || (claimUid && hasNewClaim(before, details))
  const stepChange: StepChange | undefined = hasEffectOnSteps
    ? { atMs, kind: kind.kind, namespace, name, uid, verb, volume, claimUid, handle, claims, step }
    : undefined
  return {
    template: templates.find(found.parts, jsonOfChange),
    head: `["${uid}",`,
    tail,
    owner: uid,
    stepChange,
  }
}

/** What the current call has found. It is kept between calls, so that a change with a known template allocates nothing for it. */
const found = {
  /** The kind, verb, user, manager and step, then three parts for each change: a noun, and its values before and after. */
  parts: [] as (string | undefined)[],
  /** The values of own fields as JSON strings, separated by commas. */
  values: '',
}
const CHANGES_START = 5
/** In place of the value before: the text of the change is `NOUN NAME added`, `NOUN NAME changed` or `NOUN NAME removed`. */
const ADDED = '\u0000added'
const CHANGED = '\u0000changed'
const REMOVED = '\u0000removed'
/** The text of the change is the noun. */
const ALONE = '\u0000'
/** The value is one of `values`. */
const OWN_VALUE = '\u0000own'

let lastTime = { atMs: 0, text: '0' }

/** Returns the number as text. Most records of a group commit have the same time. */
function timeText(atMs: number): string {
  if (lastTime.atMs !== atMs) lastTime = { atMs, text: String(atMs) }
  return lastTime.text
}

function detailsText({ volume, claimUid, handle, claims }: Details): string {
  let text = ''
  if (volume) text += `,"volume":${quoteText(volume)}`
  if (claimUid) text += `,"claimUid":${quoteText(claimUid)}`
  if (handle) text += `,"handle":${quoteText(handle)}`
  if (claims) text += `,"claims":${JSON.stringify(claims)}`
  if (found.values !== '') text += `,"values":[${found.values.slice(1)}]`
  return `,{${text.slice(1)}}`
}

function jsonOfChange(parts: TemplateParts): string {
  const [kind, verb, user, manager, step] = parts
  const changes: string[] = []
  for (let index = CHANGES_START; index < parts.length && changes.length < CHANGES_MAX; index += 3)
    changes.push(changeText(parts[index]!, parts[index + 1], parts[index + 2]))
  return (
    `{"kind":"${kind}","verb":"${verb}","user":${quoteText(user ?? '')}${manager ? `,"manager":${quoteText(manager)}` : ''}` +
    `,"changes":[${changes.join()}]${step ? `,"step":"${step}"` : ''}}`
  )
}

/** Returns the text as a JSON string, or as an array with the name of a field whose value belongs to the record. */
function changeText(noun: string, before: string | undefined, after: string | undefined): string {
  if (before === OWN_VALUE) return `["${noun}"]`
  if (before === ALONE) return `"${noun}"`
  if (before === ADDED || before === CHANGED || before === REMOVED)
    return `"${noun} ${escapeText(after ?? '')} ${before.slice(1)}"`
  if (after === undefined) return `"${noun} removed"`
  if (before === undefined) return `"${noun} ${cut(after)}"`
  return `"${noun} ${cut(before)} ${ARROW} ${cut(after)}"`
}

function hasNewClaim(before: AnyObject, { claimUid, handle }: Details): boolean {
  return before?.spec?.claimRef?.uid !== claimUid || before?.spec?.csi?.volumeHandle !== handle
}

function hasChanges(description: KindDescription, before: AnyObject, after: AnyObject): boolean {
  found.parts.length = 0
  findChanges(description, before, after)
  return found.parts.length > 0
}

/** Adds the changes to `found`. */
function findChanges(description: KindDescription, before: AnyObject | undefined, after: AnyObject): void {
  addFields(description.spec, before?.spec, after.spec)
  addFields(description.status, before?.status, after.status)
  const previousMeta: AnyObject = before?.metadata ?? NO_METADATA
  const { deletionTimestamp, finalizers, annotations, labels }: AnyObject = after.metadata
  const hasNewAnnotations = annotations !== previousMeta.annotations
  if (hasNewAnnotations) addChange('node', previousMeta.annotations?.[SELECTED_NODE], annotations?.[SELECTED_NODE])
  if (deletionTimestamp && !previousMeta.deletionTimestamp) addText('marked for deletion')
  if (finalizers !== previousMeta.finalizers) addNames('finalizer', previousMeta.finalizers, finalizers)
  if (!before) return
  if (hasNewAnnotations) addKeys('annotation', previousMeta.annotations, annotations)
  if (labels !== previousMeta.labels) addKeys('label', previousMeta.labels, labels)
}

const NO_METADATA = {}

/** Skips a part that is the same object before and after the update. */
function addFields(
  fields: readonly ComparedField[],
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): void {
  if (before === after) return
  for (const { name, read, isOwn } of fields) {
    const previous = before && read(before)
    const current = after && read(after)
    if (previous === current) continue
    if (isOwn && previous === undefined && current !== undefined) addOwn(name, current)
    else found.parts.push(name, previous, current)
  }
}

function addChange(name: string, before: string | undefined, after: string | undefined): void {
  if (before !== after) found.parts.push(name, before, after)
}

function addOwn(name: string, value: string): void {
  found.parts.push(name, OWN_VALUE, undefined)
  found.values += `,${quoteText(value)}`
}

const addText = (text: string): void => void found.parts.push(text, ALONE, undefined)

const cut = (text: string): string =>
  escapeText(text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text)

function addNames(noun: string, before: readonly string[] = NO_NAMES, after: readonly string[] = NO_NAMES): void {
  for (const name of after) if (!before.includes(name)) found.parts.push(noun, ADDED, name)
  for (const name of before) if (!after.includes(name)) found.parts.push(noun, REMOVED, name)
}

const NO_NAMES: readonly string[] = []

type Keys = Readonly<Record<string, string>>
const NO_KEYS: Keys = {}

/** Skips the annotation of the selected node, which is one of the compared fields. */
function addKeys(noun: string, before: Keys = NO_KEYS, after: Keys = NO_KEYS): void {
  for (const key in after) {
    if (key === SELECTED_NODE || before[key] === after[key]) continue
    found.parts.push(noun, key in before ? CHANGED : ADDED, key)
  }
  for (const key in before) if (key !== SELECTED_NODE && !(key in after)) found.parts.push(noun, REMOVED, key)
}
