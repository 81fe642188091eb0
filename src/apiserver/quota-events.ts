// Records a Warning event on an object whose update was rejected by a quota, so that `kubectl describe` shows the reason.
// The event is written in a separate transaction, because the rejected one wrote nothing.
import { createHash } from 'node:crypto'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import { timestamp } from '../base/timestamps.ts'
import type { TransactionView, Write } from '../store/index.ts'
import { type InvolvedObject, QuotaExceededError } from './admission/index.ts'
import { type ObjectDeps, putOf } from './objects/object-deps.ts'
import { encodeStored } from './objects/stored-object.ts'
import { keyOf, type WriteTarget } from './objects/write-verb.ts'
import { planCreate } from './verbs/create.ts'

const REASON = 'ExceededQuota'
const COMPONENT = 'stowage-apiserver'
const EVENT_INTERVAL_MS = 10_000 // minimum interval between updates of one event, for clients that retry in a loop

export async function withQuotaEvents<T>(deps: ObjectDeps, write: Promise<T>): Promise<T> {
  try {
    return await write
  } catch (error) {
    const quotaError = error instanceof QuotaExceededError ? error : (error as Error).cause
    if (quotaError instanceof QuotaExceededError && quotaError.involvedObject)
      await recordEvent(deps, quotaError, quotaError.involvedObject).catch(() => {})
    throw error
  }
}

async function recordEvent(
  deps: ObjectDeps,
  { quotaName, detail }: QuotaExceededError,
  involvedObject: InvolvedObject,
): Promise<void> {
  const id = createHash('sha256').update(`${involvedObject.uid} ${quotaName}`).digest('hex').slice(0, 16)
  const resource = deps.resources.findPreferred(eventKind.group, eventKind.plural)
  if (!resource) return
  const target: WriteTarget = {
    resource,
    namespace: involvedObject.namespace,
    name: `${involvedObject.name}.${id}`,
    subresource: '',
    user: { name: `system:${COMPONENT}`, groups: [] },
    dryRun: false,
  }
  await deps.store.transact((view) => planEvent(deps, target, involvedObject, detail, view))
}

function planEvent(
  deps: ObjectDeps,
  target: WriteTarget,
  involvedObject: InvolvedObject,
  message: string,
  view: TransactionView,
): readonly Write[] {
  const nowMs = deps.clock.nowMs()
  const timestampNow = timestamp(nowMs)
  const entry = view.get(keyOf(target))
  if (!entry) return planCreate(deps, target, newEvent(target, involvedObject, message, timestampNow), view).writes
  const previousEvent = deps.objects.decode(entry) as Readonly<Event>
  if (nowMs - Date.parse(previousEvent.lastTimestamp ?? timestampNow) < EVENT_INTERVAL_MS) return []
  const updatedEvent: Event = {
    ...previousEvent,
    message,
    lastTimestamp: timestampNow,
    count: (previousEvent.count ?? 1) + 1,
  }
  return [putOf(deps, target.resource, entry.key, updatedEvent, encodeStored(updatedEvent))]
}

const newEvent = (
  { namespace, name }: WriteTarget,
  involvedObject: InvolvedObject,
  message: string,
  timestampNow: string,
): Event => ({
  metadata: { namespace, name },
  involvedObject: { ...involvedObject },
  type: 'Warning',
  reason: REASON,
  message,
  source: { component: COMPONENT },
  firstTimestamp: timestampNow,
  lastTimestamp: timestampNow,
  count: 1,
  reportingComponent: COMPONENT,
  reportingInstance: COMPONENT,
})
