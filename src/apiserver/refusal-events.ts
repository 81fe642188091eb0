// Leaves a Warning event on an object whose change a quota has refused: who looks at the object later sees why it stayed
// as it was. The refused transaction wrote nothing, so this is one of its own; the refusal is answered either way.
import { createHash } from 'node:crypto'
import { eventKind } from '../api/kinds/event/event.ts'
import type { Event } from '../api/kinds/event/event-schema.ts'
import type { TransactionView, Write } from '../store/index.ts'
import { QuotaRefusal, type RefusedObject } from './admission/index.ts'
import { encodeStored } from './objects/stored-object.ts'
import { keyOf, type ObjectDeps, putOf, timestamp, type WriteTarget } from './objects/write-deps.ts'
import { decideCreate } from './verbs/create.ts'

const REASON = 'ExceededQuota'
const COMPONENT = 'stowage-apiserver'
const PAUSE_MS = 10_000 // refusals of one object by one quota that come faster are one event: clients may retry in a loop

/** Does the work; if a quota refuses it, says so on the object before passing the refusal on. */
export async function tellingRefusals<T>(deps: ObjectDeps, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const refusal = error instanceof QuotaRefusal ? error : (error as Error).cause
    if (refusal instanceof QuotaRefusal && refusal.about) await tell(deps, refusal, refusal.about).catch(() => {})
    throw error
  }
}

async function tell(deps: ObjectDeps, refusal: QuotaRefusal, about: RefusedObject): Promise<void> {
  const id = createHash('sha256').update(`${about.uid} ${refusal.quotaName}`).digest('hex').slice(0, 16)
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
  await deps.store.transact((view) => decideEvent(deps, target, refusal, about, view))
}

function decideEvent(
  deps: ObjectDeps,
  target: WriteTarget,
  { why }: QuotaRefusal,
  about: RefusedObject,
  view: TransactionView,
): readonly Write[] {
  const nowMs = deps.clock.nowMs()
  const now = timestamp(nowMs)
  const entry = view.get(keyOf(target))
  if (!entry) return decideCreate(deps, target, newEvent(target, about, why, now), view).writes
  const before = deps.objects.decode(entry) as Readonly<Event>
  if (nowMs - Date.parse(before.lastTimestamp ?? now) < PAUSE_MS) return []
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
