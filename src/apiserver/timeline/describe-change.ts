// Describes a change of a claim, a volume, an attachment, or a pod that uses claims, as a record of the journal. It
// runs for every write of these kinds, so it compares only the fields that show the lifecycle of a volume. It records
// only the names of changed annotations and labels, because their values can be long or confidential.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { WriteTarget } from '../objects/write-verb.ts'
import type { ChangeRecord } from './journal-record.ts'

/** The object before and after a write. `before` is undefined for a create, `after` for a removal. */
export interface ObjectChange {
  readonly before: Readonly<KubeObject> | undefined
  readonly after: Readonly<KubeObject> | undefined
}

/** Longer texts are cut, such as the message of a driver in an attachment. */
const TEXT_LENGTH_MAX = 300
/** Further changes of one write are left out. */
const CHANGES_MAX = 20
const SELECTED_NODE = 'volume.kubernetes.io/selected-node'

type Details = Pick<ChangeRecord, 'volume' | 'claimUid' | 'handle' | 'claims' | 'step'>

interface KindDescription {
  /** Whether the journal records changes of this object. Default: true for all objects. */
  isJournaled?(object: AnyObject): boolean
  /** Whether an update that changes none of these fields is left out of the journal. */
  readonly omitsOtherFields?: true
  /** Returns the fields that are compared, in the order of their texts. The value undefined is an absent field. */
  fieldsOf(object: AnyObject): Readonly<Record<string, string | undefined>>
  detailsOf(object: AnyObject, before: AnyObject | undefined): Details
}

const storageOf = (list: AnyObject): string | undefined => list?.storage

const conditionsOf = (conditions: AnyObject): string | undefined =>
  conditions?.length > 0
    ? conditions
        .map(({ type, status, reason }: AnyObject) => `${type}=${status}${reason ? ` (${reason})` : ''}`)
        .join(', ')
    : undefined

const CLAIM: KindDescription = {
  fieldsOf: ({ spec, status, metadata }) => ({
    request: storageOf(spec?.resources?.requests),
    class: spec?.storageClassName,
    'attributes class': spec?.volumeAttributesClassName,
    node: metadata.annotations?.[SELECTED_NODE],
    volume: spec?.volumeName,
    phase: status?.phase,
    capacity: storageOf(status?.capacity),
    'allocated size': storageOf(status?.allocatedResources),
    resize: storageOf(status?.allocatedResourceStatuses),
    'current attributes class': status?.currentVolumeAttributesClassName,
    modification: status?.modifyVolumeStatus?.status,
    conditions: conditionsOf(status?.conditions),
  }),
  detailsOf: (claim, before) => ({
    ...(claim.spec?.volumeName ? { volume: claim.spec.volumeName } : {}),
    ...stepOf(claimStepOf(claim, before)),
  }),
}

const VOLUME: KindDescription = {
  fieldsOf: ({ spec, status }) => ({
    capacity: storageOf(spec?.capacity),
    class: spec?.storageClassName,
    'attributes class': spec?.volumeAttributesClassName,
    driver: spec?.csi?.driver,
    claim: spec?.claimRef ? `${spec.claimRef.namespace}/${spec.claimRef.name}` : undefined,
    'reclaim policy': spec?.persistentVolumeReclaimPolicy,
    phase: status?.phase,
    message: status?.message,
  }),
  detailsOf: ({ spec }, before) => ({
    ...(spec?.claimRef?.uid ? { claimUid: spec.claimRef.uid } : {}),
    ...(spec?.csi?.volumeHandle ? { handle: spec.csi.volumeHandle } : {}),
    ...stepOf(before ? undefined : 'Provisioned'),
  }),
}

const ATTACHMENT: KindDescription = {
  fieldsOf: ({ spec, status }) => ({
    volume: spec?.source?.persistentVolumeName,
    node: spec?.nodeName,
    attached: status?.attached === undefined ? undefined : String(status.attached),
    'attach error': status?.attachError?.message,
    'detach error': status?.detachError?.message,
  }),
  detailsOf: ({ spec, status }, before) => ({
    ...(spec?.source?.persistentVolumeName ? { volume: spec.source.persistentVolumeName } : {}),
    ...stepOf(status?.attached && !before?.status?.attached ? 'Attached' : undefined),
  }),
}

/** A node agent often updates the status of a pod. */
const POD: KindDescription = {
  isJournaled: (pod) => claimsOf(pod).length > 0,
  omitsOtherFields: true,
  fieldsOf: ({ spec, status }) => ({ node: spec?.nodeName || undefined, phase: status?.phase }),
  detailsOf: (pod, before) => ({
    claims: claimsOf(pod),
    ...stepOf(pod.spec?.nodeName && !before?.spec?.nodeName ? 'Scheduled' : undefined),
  }),
}

const DESCRIPTIONS: ReadonlyMap<Kind, KindDescription> = new Map<Kind, KindDescription>([
  [persistentVolumeClaimKind, CLAIM],
  [persistentVolumeKind, VOLUME],
  [volumeAttachmentKind, ATTACHMENT],
  [podKind, POD],
])

const stepOf = (step: StepName | undefined): Details => (step ? { step } : {})

function claimStepOf(claim: AnyObject, before: AnyObject | undefined): StepName | undefined {
  if (!before) return 'Created'
  if (claim.status?.phase === 'Bound' && before.status?.phase !== 'Bound') return 'Bound'
  const isSelected = claim.metadata.annotations?.[SELECTED_NODE] && !before.metadata.annotations?.[SELECTED_NODE]
  return isSelected ? 'Scheduled' : undefined
}

/** Returns the names of the claims of a pod, including those that are created for it. */
function claimsOf({ spec, metadata }: AnyObject): string[] {
  const claims: string[] = []
  for (const { name, persistentVolumeClaim, ephemeral } of spec?.volumes ?? []) {
    if (persistentVolumeClaim?.claimName) claims.push(persistentVolumeClaim.claimName)
    else if (ephemeral) claims.push(`${metadata.name}-${name}`)
  }
  return claims
}

/** Returns undefined for objects of other kinds, pods without claims, and updates of pods that change neither node nor phase. */
export function describeChange(target: WriteTarget, change: ObjectChange, atMs: number): ChangeRecord | undefined {
  const { kind } = target.resource
  const description = DESCRIPTIONS.get(kind)
  const { before, after } = change
  const object: AnyObject = after ?? before
  if (!description || !object || (description.isJournaled && !description.isJournaled(object))) return undefined
  const { name = '', namespace, uid = '' } = object.metadata
  const changes = changesOf(description, change)
  if (before && after && changes.length === 0) {
    if (description.omitsOtherFields) return undefined
    changes.push('other fields')
  }
  return {
    atMs,
    kind: kind.kind,
    ...(namespace ? { namespace } : {}),
    name,
    uid,
    verb: before ? (after ? 'update' : 'delete') : 'create',
    user: target.user.name,
    ...(target.fieldManager ? { manager: target.fieldManager } : {}),
    changes: changes.length > CHANGES_MAX ? changes.slice(0, CHANGES_MAX) : changes,
    ...(after ? description.detailsOf(after, before) : withoutStep(description.detailsOf(object, object))),
  }
}

const withoutStep = ({ step: _, ...details }: Details): Details => details

function changesOf(description: KindDescription, { before, after }: ObjectChange): string[] {
  if (!after) return []
  const changes: string[] = []
  const previousFields = before ? description.fieldsOf(before) : {}
  const fields = description.fieldsOf(after)
  for (const field in fields) addChange(changes, field, previousFields[field], fields[field])
  const previousMeta: AnyObject = before?.metadata ?? {}
  const { deletionTimestamp, finalizers, annotations, labels }: AnyObject = after.metadata
  if (deletionTimestamp && !previousMeta.deletionTimestamp) changes.push('marked for deletion')
  if (finalizers !== previousMeta.finalizers)
    addNames(changes, 'finalizer', namesOf(previousMeta.finalizers), namesOf(finalizers))
  if (!before) return changes
  if (annotations !== previousMeta.annotations) addKeys(changes, 'annotation', previousMeta.annotations, annotations)
  if (labels !== previousMeta.labels) addKeys(changes, 'label', previousMeta.labels, labels)
  return changes
}

function addChange(changes: string[], field: string, before: string | undefined, after: string | undefined): void {
  if (before === after) return
  if (after === undefined) changes.push(`${field} removed`)
  else if (before === undefined) changes.push(`${field} ${cut(after)}`)
  else changes.push(`${field} ${cut(before)} → ${cut(after)}`)
}

const cut = (text: string): string => (text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text)

const namesOf = (finalizers: readonly string[] | undefined): readonly string[] => finalizers ?? []

function addNames(changes: string[], noun: string, before: readonly string[], after: readonly string[]): void {
  for (const name of after) if (!before.includes(name)) changes.push(`${noun} ${name} added`)
  for (const name of before) if (!after.includes(name)) changes.push(`${noun} ${name} removed`)
}

type Keys = Readonly<Record<string, string>> | undefined

/** Skips the annotation of the selected node, which is one of the compared fields. */
function addKeys(changes: string[], noun: string, before: Keys = {}, after: Keys = {}): void {
  for (const key in after) {
    if (key === SELECTED_NODE || before[key] === after[key]) continue
    changes.push(`${noun} ${key} ${key in before ? 'changed' : 'added'}`)
  }
  for (const key in before) if (key !== SELECTED_NODE && !(key in after)) changes.push(`${noun} ${key} removed`)
}
