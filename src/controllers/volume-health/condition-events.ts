// Records the condition of volumes as events on their claims, with the reasons and messages of external-health-monitor. An
// abnormal condition is recorded when it begins or its message changes, and again before its event expires; a normal one only
// after an abnormal one.

import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import type { Event } from '../../api/kinds/event/event-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { EventRecorder } from '../../runtime/index.ts'
import type { VolumeCondition } from './read-conditions.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

const ABNORMAL = 'VolumeConditionAbnormal'
const NORMAL = 'VolumeConditionNormal'
const NORMAL_MESSAGE = 'The Volume returns to the healthy state'
/** Half the time for which Kubernetes keeps events. */
const REPEAT_INTERVAL_MS = 1_800_000
const EVENTS_PER_PAGE = 500

export interface ConditionEvents {
  /** Reads the events of earlier processes, to also record recoveries from the conditions in them. */
  readEarlierEvents(client: Client, signal: AbortSignal): Promise<void>
  record(claim: Claim, condition: VolumeCondition): void
  /** Discards a deleted claim's state. */
  forget(claim: Claim): void
  /** The number of claims whose last condition is abnormal. */
  readonly abnormalCount: number
}

export function createConditionEvents(clock: Clock, events: Pick<EventRecorder, 'record'>): ConditionEvents {
  /** The abnormal conditions by uid of the claim. */
  const recorded = new Map<string, { readonly message: string; readonly atMs: number }>()

  return {
    async readEarlierEvents(client, signal) {
      const [abnormalMs, normalMs] = await Promise.all([
        readLastTimes(client, ABNORMAL, signal),
        readLastTimes(client, NORMAL, signal),
      ])
      for (const [uid, atMs] of abnormalMs) {
        if (atMs > (normalMs.get(uid) ?? 0)) recorded.set(uid, { message: '', atMs: Number.NEGATIVE_INFINITY })
      }
    },
    record(claim, { isAbnormal, message }) {
      const { uid } = claim.metadata
      const last = recorded.get(uid)
      if (!isAbnormal) {
        if (!last) return
        recorded.delete(uid)
        events.record(persistentVolumeClaimKind, claim, { type: 'Normal', reason: NORMAL, message: NORMAL_MESSAGE })
        return
      }
      const nowMs = clock.monotonicMs()
      if (last?.message === message && nowMs - last.atMs < REPEAT_INTERVAL_MS) return
      recorded.set(uid, { message, atMs: nowMs })
      events.record(persistentVolumeClaimKind, claim, { type: 'Warning', reason: ABNORMAL, message })
    },
    forget: ({ metadata: { uid } }) => void recorded.delete(uid),
    get abnormalCount() {
      return recorded.size
    },
  }
}

/** Returns the time of the last event with the reason, by uid of the claim. */
async function readLastTimes(client: Client, reason: string, signal: AbortSignal): Promise<Map<string, number>> {
  const times = new Map<string, number>()
  let continueToken: string | undefined
  do {
    const page = await client.list(eventKind, {
      fieldSelector: `involvedObject.kind=PersistentVolumeClaim,reason=${reason}`,
      limit: EVENTS_PER_PAGE,
      continueToken,
      signal,
    })
    for (const event of page.items) {
      const uid = event.involvedObject.uid ?? ''
      times.set(uid, Math.max(times.get(uid) ?? 0, lastTimeOf(event)))
    }
    continueToken = page.continueToken
  } while (continueToken)
  return times
}

const lastTimeOf = ({ lastTimestamp, eventTime, metadata }: Readonly<Event>): number =>
  Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '') || 0
