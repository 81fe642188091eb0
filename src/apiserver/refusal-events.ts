// Records a Warning event on an object whose update a quota has rejected, so that `kubectl describe` shows why the object
// did not change. The rejected transaction wrote nothing; the event is written in a separate transaction.
import { createHash } from 'node:crypto'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import type { TransactionView, Write } from '../store/index.ts'
import { QuotaRefusal, type RefusedObject } from './admission/index.ts'
import { type ObjectDeps, putOf, timestamp } from './objects/object-deps.ts'
import { encodeStored } from './objects/stored-object.ts'
import { keyOf, type WriteTarget } from './objects/write-verb.ts'
import { planCreate } from './verbs/create.ts'

const REASON = 'ExceededQuota'
const COMPONENT = 'stowage-apiserver'
const EVENT_INTERVAL_MS = 10_000 // a client that retries in a loop changes the event of one object and quota no faster

/** Passes the result or the error of a write on, after recording the event if the error is a quota's. */
export async function recordingQuotaRefusals<T>(deps: ObjectDeps, write: Promise<T>): Promise<T> {
  try {
    return await write
  } catch (error) {
    const refusal = error instanceof QuotaRefusal ? error : (error as Error).cause
    if (refusal instanceof QuotaRefusal && refusal.about) await record(deps, refusal, refusal.about).catch(() => {})
    throw error
  }
}

async function record(deps: ObjectDeps, { quotaName, why }: QuotaRefusal, about: RefusedObject): Promise<void> {
  const id = createHash('sha256').update(`${about.uid} ${quotaName}`).digest('hex').slice(0, 16)
  const resource = deps.resources.preferred(eventKind.group, eventKind.plural)
  if (!resource) return
  const target: WriteTarget = {
    resource,
    namespace: about.namespace,
    name: `${about.name}.${id}`,
    subresource: '',
    user: { name: `system:${COMPONENT}`, groups: [] },
    dryRun: false,
  }
  await deps.store.transact((view) => planEvent(deps, target, about, why, view))
}

function planEvent(
  deps: ObjectDeps,
  target: WriteTarget,
  about: RefusedObject,
  why: string,
  view: TransactionView,
): readonly Write[] {
  const nowMs = deps.clock.nowMs()
  const now = timestamp(nowMs)
  const entry = view.get(keyOf(target))
  if (!entry) return planCreate(deps, target, newEvent(target, about, why, now), view).writes
  const before = deps.objects.decode(entry) as Readonly<Event>
  if (nowMs - Date.parse(before.lastTimestamp ?? now) < EVENT_INTERVAL_MS) return []
  const again: Event = { ...before, message: why, lastTimestamp: now, count: (before.count ?? 1) + 1 }
  return [putOf(deps, target.resource, entry.key, again, encodeStored(again))]
}

const newEvent = ({ namespace, name }: WriteTarget, about: RefusedObject, why: string, now: string): Event => ({
  metadata: { namespace, name },
  involvedObject: { ...about },
  type: 'Warning',
  reason: REASON,
  message: why,
  source: { component: COMPONENT },
  firstTimestamp: now,
  lastTimestamp: now,
  count: 1,
  reportingComponent: COMPONENT,
  reportingInstance: COMPONENT,
})
