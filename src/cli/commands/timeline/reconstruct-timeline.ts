// Reconstructs the timeline of a claim or volume on an API server without a journal, from existing objects: creation
// times, managed fields, conditions and events of the claim, its volume, their attachments and the pods of the claim.
// It only reads. If a related object cannot be read, the timeline is incomplete, and a note says so.
import type { Kind, KubeObject, Stored } from '../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { eventKind } from '../../../api/kinds/event/event.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import {
  STEPS,
  type StepName,
  type TimelineEntry,
  type TimelineStep,
} from '../../../api/kinds/timeline/timeline-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError, isNotFound } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import { type ShownTimeline, shortRefOf, type TimelineTarget } from './shown-timeline.ts'

/** Maximum number of changed fields that are named for one entry of managedFields. */
const FIELDS_MAX = 6

export async function reconstructTimeline(
  client: Client,
  target: TimelineTarget,
  signal: AbortSignal,
): Promise<ShownTimeline> {
  const reader = createReader(client, signal)
  const { claim, volume } = await readPair(reader, target)
  const found = target.kind === 'PersistentVolume' ? volume : claim
  if (!found && reader.errors[0]) throw new Error(`Cannot read ${shortRefOf(target)}: ${reader.errors[0]}`)
  if (!found || (target.uid && found.metadata.uid !== target.uid))
    throw new Error(
      `There is no ${shortRefOf(target)}${target.namespace ? ` in namespace ${target.namespace}` : ''}` +
        `${target.uid ? ` with uid ${target.uid}` : ''}. This API server has no journal, so only existing objects have a timeline.`,
    )
  const volumeName = volume?.metadata.name
  const attachments = volumeName
    ? (await reader.list(volumeAttachmentKind)).filter(({ spec }) => spec.source?.persistentVolumeName === volumeName)
    : []
  const claimName = claim?.metadata.name
  const pods = claim
    ? (await reader.list(podKind, claim.metadata.namespace)).filter((pod) => usesClaim(pod, claimName))
    : []
  const objects: readonly (readonly [Kind, Readonly<Stored>])[] = [
    ...(claim ? [[persistentVolumeClaimKind, claim] as const] : []),
    ...(volume ? [[persistentVolumeKind, volume] as const] : []),
    ...attachments.map((attachment) => [volumeAttachmentKind, attachment] as const),
    ...pods.map((pod) => [podKind, pod] as const),
  ]
  const entries: TimelineEntry[] = []
  for (const [kind, object] of objects) {
    entries.push(...listChanges(kind, object), ...(await reader.eventsOf(kind, object)))
  }
  return {
    ...target,
    uid: found.metadata.uid,
    source: 'objects',
    notes: reader.errors.map((message) => `Incomplete: ${message}`),
    otherUids: [],
    steps: stepsOf({ claim, volume, attachments, pods }),
    entries: entries.sort((a, b) => Date.parse(a.time) - Date.parse(b.time)),
  }
}

type Reader = ReturnType<typeof createReader>

function createReader(client: Client, signal: AbortSignal) {
  /** The messages of failed requests. */
  const errors: string[] = []
  const noteError = (error: unknown): void => {
    if (!(error instanceof ApiError)) throw error
    if (!isNotFound(error)) errors.push(error.message)
  }
  async function list<T extends KubeObject>(kind: Kind<T>, namespace?: string, fieldSelector?: string) {
    try {
      return (
        await client.list(kind, {
          signal,
          ...(namespace ? { namespace } : {}),
          ...(fieldSelector ? { fieldSelector } : {}),
        })
      ).items
    } catch (error) {
      noteError(error)
      return []
    }
  }
  return {
    errors,
    list,
    async get<T extends KubeObject>(kind: Kind<T>, ref: { readonly name: string; readonly namespace?: string }) {
      try {
        return await client.get(kind, ref, { signal })
      } catch (error) {
        noteError(error)
        return undefined
      }
    },
    async eventsOf(kind: Kind, { metadata }: Readonly<Stored>): Promise<TimelineEntry[]> {
      const events = await list(eventKind, metadata.namespace ?? 'default', `involvedObject.uid=${metadata.uid}`)
      return events.map((event) => ({
        time: event.firstTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '',
        type: 'Event',
        object: refOf(kind, metadata),
        action: event.reason ?? '',
        component: event.reportingComponent || event.source?.component || '',
        result: event.type ?? '',
        message: `${event.message ?? ''}${(event.count ?? 1) > 1 ? ` (${event.count} times)` : ''}`,
      }))
    },
  }
}

/** Returns the claim with its volume, or the volume with its claim. */
async function readPair(reader: Reader, { kind, namespace, name }: TimelineTarget) {
  if (kind === 'PersistentVolumeClaim') {
    const claim = await reader.get(persistentVolumeClaimKind, { name, ...(namespace ? { namespace } : {}) })
    const volumeName = claim?.spec?.volumeName
    return { claim, volume: volumeName ? await reader.get(persistentVolumeKind, { name: volumeName }) : undefined }
  }
  const volume = await reader.get(persistentVolumeKind, { name })
  const { namespace: claimNamespace, name: claimName, uid } = volume?.spec?.claimRef ?? {}
  const claim =
    claimNamespace && claimName
      ? await reader.get(persistentVolumeClaimKind, { namespace: claimNamespace, name: claimName })
      : undefined
  return { volume, claim: claim?.metadata.uid === uid ? claim : undefined }
}

const usesClaim = ({ spec, metadata }: Readonly<Stored<Pod>>, claimName: string | undefined): boolean =>
  (spec?.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claimName || (ephemeral && `${metadata.name}-${name}` === claimName),
  )

const refOf = ({ kind }: Kind, { namespace, name, uid }: Readonly<Stored>['metadata']) => ({
  kind,
  ...(namespace ? { namespace } : {}),
  name,
  uid,
})

/** Returns the creation, the last write of each manager, and the request for deletion. */
function listChanges(kind: Kind, { metadata }: Readonly<Stored>): TimelineEntry[] {
  const object = refOf(kind, metadata)
  const managed = (metadata.managedFields ?? []).flatMap(
    ({ manager, time, subresource, fieldsV1 }): TimelineEntry[] => {
      if (!time) return []
      const fields = fieldNamesOf(fieldsV1)
      const changes = fields.length > 0 ? [`set ${fields.join(', ')}`] : []
      const action = subresource ? `update ${subresource}` : 'update'
      return [{ time, type: 'Change', object, action, manager: manager ?? '', changes }]
    },
  )
  const { creationTimestamp, deletionTimestamp } = metadata
  return [
    ...(creationTimestamp ? [{ time: creationTimestamp, type: 'Change' as const, object, action: 'create' }] : []),
    ...managed,
    ...(deletionTimestamp
      ? [
          {
            time: deletionTimestamp,
            type: 'Change' as const,
            object,
            action: 'delete',
            changes: ['marked for deletion'],
          },
        ]
      : []),
  ]
}

/** Returns names such as `spec.volumeName`: the second level of the field set. */
function fieldNamesOf(fields: unknown): string[] {
  if (typeof fields !== 'object' || fields === null) return []
  const names = Object.entries(fields).flatMap(([parent, children]) => {
    const childNames = Object.keys(typeof children === 'object' && children !== null ? children : {})
    return childNames.filter((child) => child.startsWith('f:')).map((child) => `${parent.slice(2)}.${child.slice(2)}`)
  })
  return names.length > FIELDS_MAX ? [...names.slice(0, FIELDS_MAX), '…'] : names
}

interface RelatedObjects {
  readonly claim: Readonly<Stored<PersistentVolumeClaim>> | undefined
  readonly volume: Readonly<Stored<PersistentVolume>> | undefined
  readonly attachments: readonly Readonly<Stored>[]
  readonly pods: readonly Readonly<Stored<Pod>>[]
}

/** The times of Bound and Attached are those of the last status writes that set their fields. */
function stepsOf({ claim, volume, attachments, pods }: RelatedObjects): TimelineStep[] {
  const conditionTimes = (type: string) =>
    pods.flatMap(({ status }) =>
      (status?.conditions ?? []).flatMap((condition) =>
        condition.type === type && condition.status === 'True' ? (condition.lastTransitionTime ?? []) : [],
      ),
    )
  const times: Readonly<Record<StepName, readonly (string | undefined)[]>> = {
    Created: [claim?.metadata.creationTimestamp],
    Scheduled: conditionTimes('PodScheduled'),
    Provisioned: [volume?.metadata.creationTimestamp],
    Bound: claim?.status?.phase === 'Bound' ? [timeOfField(claim, 'phase')] : [],
    Attached: attachments.map((attachment) => timeOfField(attachment, 'attached')),
    Published: conditionTimes('PodReadyToStartContainers'),
  }
  return STEPS.flatMap((name): TimelineStep[] => {
    const [time] = times[name].filter((candidate) => candidate !== undefined).sort()
    return time ? [{ name, time }] : []
  }).sort((a, b) => Date.parse(a.time) - Date.parse(b.time))
}

/** Returns the time at which a manager last wrote a field of the status. */
function timeOfField({ metadata }: Readonly<Stored>, field: string): string | undefined {
  return metadata.managedFields?.find(({ fieldsV1 }) => {
    const status = (fieldsV1 as { readonly 'f:status'?: object } | undefined)?.['f:status']
    return status !== undefined && `f:${field}` in status
  })?.time
}
