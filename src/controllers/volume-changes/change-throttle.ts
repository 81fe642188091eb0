// Limits how fast volumes of one driver are changed: a budget of new changes per period, and a cooldown per volume.
// One edit of a claim (size and attributes together) is one change, whose later steps and retries are not delayed.
// The time of the last change is an annotation on the volume, so that the cooldown survives a restart.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Subject } from './change.ts'

export interface ThrottleOptions {
  /** Changes that may start per period. Absent: unlimited. */
  readonly budget?: ChangeBudget
  /** Time between the end of one change of a volume and the start of the next. Default 0. */
  readonly cooldownMs?: number
}

export interface ChangeBudget {
  readonly changes: number
  readonly periodMs: number
}

export interface Delay {
  readonly afterMs: number
  readonly because: string
  /** No delay was returned for this request before: record an event. */
  readonly isNew: boolean
}

export interface ChangeThrottle {
  /** Undefined: the change may start now, and counts against the budget. */
  begin(subject: Subject): Delay | undefined
  /** The driver has changed the volume. Returns annotations to save with the result. */
  recordChange(subject: Subject): Readonly<Record<string, string>>
}

export const CHANGED_ANNOTATION = 'changing.stowage.dev/changed'

/** Beyond this many volumes, the least recently used record is dropped; its annotation still enforces the cooldown. */
const RECORDS_MAX = 100_000

interface ChangeRecord {
  /** The request that began last (requestOf). */
  readonly request: string
  readonly changedMs?: number
  /** The request for which a delay was announced. Not stored. */
  readonly announced?: string
}

export function createChangeThrottle(
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
  options: ThrottleOptions,
): ChangeThrottle {
  const { budget, cooldownMs = 0 } = options
  const records = new LruCache<string, ChangeRecord>(RECORDS_MAX)
  const bucket = budget && createTokenBucket(clock, budget)

  const recordOf = ({ metadata }: Subject['volume']): ChangeRecord | undefined =>
    records.get(metadata.uid) ?? parseRecord(metadata.annotations?.[CHANGED_ANNOTATION])

  return {
    begin({ claim, volume }) {
      const { name, uid } = volume.metadata
      const request = requestOf(claim)
      const record = recordOf(volume)
      if (record?.request === request) return undefined // the next step of the same change, or a retry
      const cooldownLeftMs = record?.changedMs === undefined ? 0 : record.changedMs + cooldownMs - clock.nowMs()
      const afterMs = cooldownLeftMs > 0 ? cooldownLeftMs : (bucket?.take() ?? 0)
      if (afterMs <= 0) {
        records.set(uid, { request, changedMs: record?.changedMs })
        return undefined
      }
      const until = `${new Date(clock.nowMs() + afterMs).toISOString().slice(0, 19)}Z`
      const because =
        cooldownLeftMs > 0
          ? `volume ${name} was changed recently; its cooldown ends at ${until}`
          : `the budget for volume changes is used up; volume ${name} can be changed at ${until}`
      const isNew = record?.announced !== request
      records.set(uid, { request: '', ...record, announced: request })
      return { afterMs, because, isNew }
    },
    recordChange({ claim, volume }): Readonly<Record<string, string>> {
      if (cooldownMs === 0) return {}
      const record = { request: requestOf(claim), changedMs: clock.nowMs() }
      records.set(volume.metadata.uid, record)
      return { [CHANGED_ANNOTATION]: formatRecord(record) }
    },
  }
}

export const changeDelayed = ({ because }: Delay): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeChangeDelayed',
  message: because,
})

/** A token bucket that refills continuously. */
function createTokenBucket(clock: Pick<Clock, 'monotonicMs'>, { changes, periodMs }: ChangeBudget) {
  let left = changes
  let atMs = clock.monotonicMs()
  return {
    /** Takes a token and returns 0, or returns the time until one is available. */
    take(): number {
      const nowMs = clock.monotonicMs()
      left = Math.min(changes, left + ((nowMs - atMs) * changes) / periodMs)
      atMs = nowMs
      if (left < 1) return Math.max(1, Math.ceil(((1 - left) * periodMs) / changes))
      left--
      return 0
    },
  }
}

/** Everything that a user can change about a volume, as one comparable text. */
const requestOf = ({ spec }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    amountOf(spec?.resources?.requests, 'storage') ?? null,
    spec?.volumeAttributesClassName || null,
    ...IO_RESOURCES.map((name) => amountOf(spec?.resources?.requests, name) ?? null),
  ])

/** The annotation calls the request `wish`. The name is stored on volumes, so it cannot change. */
const formatRecord = ({ request, changedMs }: ChangeRecord): string => JSON.stringify({ wish: request, changedMs })

function parseRecord(text: string | undefined): ChangeRecord | undefined {
  try {
    const { wish: request, changedMs } = JSON.parse(text ?? '{}')
    return typeof request === 'string' && typeof changedMs === 'number' ? { request, changedMs } : undefined
  } catch {
    return undefined // edited by a user: ignored
  }
}
