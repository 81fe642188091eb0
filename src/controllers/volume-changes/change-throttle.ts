// Limits the rate of volume changes of one driver: a budget of new changes per period, and a cooldown per volume. One edit
// of a claim (size and attributes together) is one change; its later steps and retries are not delayed. The time of the
// last change is saved in an annotation of the volume, so that the cooldown survives a restart.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { EventDetails } from '../../runtime/index.ts'
import type { Subject } from './change.ts'

export interface ThrottleOptions {
  /** Number of changes that may start per period. By default there is no limit. */
  readonly budget?: ChangeBudget
  /** Time between the end of one change to a volume and the start of the next. Default 0. */
  readonly cooldownMs?: number
}

interface ChangeBudget {
  readonly changes: number
  readonly periodMs: number
}

export interface Delay {
  readonly afterMs: number
  readonly message: string
  /** Whether this is the first delay of the request, for which the caller must record an event. */
  readonly isNew: boolean
}

export interface ChangeThrottle {
  /** Returns a delay, or undefined if the change may start now. A new change then counts against the budget. */
  begin(subject: Subject): Delay | undefined
  /** Records that the driver has changed the volume. Returns annotations to save with the result. */
  recordChange(subject: Subject): Readonly<Record<string, string>>
}

export const CHANGED_ANNOTATION = 'changing.stowage.dev/changed'

/** If there are more volumes, the least recently used record is dropped. Its annotation still enforces the cooldown. */
const RECORDS_MAX = 100_000

interface ChangeRecord {
  /** The last request that was started, as returned by requestOf. Empty if none is known. */
  readonly request: string
  readonly changedMs?: number
  /** The request for which a delay was returned. Not saved in the annotation. */
  readonly delayedRequest?: string
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
      const remainingCooldownMs = record?.changedMs === undefined ? 0 : record.changedMs + cooldownMs - clock.nowMs()
      const afterMs = remainingCooldownMs > 0 ? remainingCooldownMs : (bucket?.take() ?? 0)
      if (afterMs <= 0) {
        records.set(uid, { request, changedMs: record?.changedMs })
        return undefined
      }
      const endTime = timestamp(clock.nowMs() + afterMs)
      const message =
        remainingCooldownMs > 0
          ? `volume ${name} was changed recently; its cooldown ends at ${endTime}`
          : `the budget for volume changes is used up; volume ${name} can be changed at ${endTime}`
      const isNew = record?.delayedRequest !== request
      records.set(uid, { request: '', ...record, delayedRequest: request })
      return { afterMs, message, isNew }
    },
    recordChange({ claim, volume }): Readonly<Record<string, string>> {
      if (cooldownMs === 0) return {}
      const record = { request: requestOf(claim), changedMs: clock.nowMs() }
      records.set(volume.metadata.uid, record)
      return { [CHANGED_ANNOTATION]: serializeRecord(record) }
    },
  }
}

export const changeDelayed = ({ message }: Delay): EventDetails => ({
  type: 'Normal',
  reason: 'VolumeChangeDelayed',
  message,
})

/** A token bucket that refills continuously. */
function createTokenBucket(clock: Pick<Clock, 'monotonicMs'>, { changes, periodMs }: ChangeBudget) {
  let tokens = changes
  let refilledMs = clock.monotonicMs()
  return {
    /** Takes a token and returns 0, or returns the time until one is available. */
    take(): number {
      const nowMs = clock.monotonicMs()
      tokens = Math.min(changes, tokens + ((nowMs - refilledMs) * changes) / periodMs)
      refilledMs = nowMs
      if (tokens < 1) return Math.max(1, Math.ceil(((1 - tokens) * periodMs) / changes))
      tokens--
      return 0
    },
  }
}

/** Returns all fields of the claim that change the volume, as JSON for comparison. */
const requestOf = ({ spec }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    amountOf(spec?.resources?.requests, 'storage') ?? null,
    spec?.volumeAttributesClassName || null,
    ...IO_RESOURCES.map((name) => amountOf(spec?.resources?.requests, name) ?? null),
  ])

/** The field of the annotation is named `wish`. It is stored on existing volumes, so it cannot be renamed. */
const serializeRecord = ({ request, changedMs }: ChangeRecord): string => JSON.stringify({ wish: request, changedMs })

function parseRecord(text: string | undefined): ChangeRecord | undefined {
  try {
    const { wish: request, changedMs } = JSON.parse(text ?? '{}')
    return typeof request === 'string' && typeof changedMs === 'number' ? { request, changedMs } : undefined
  } catch {
    return undefined // a user edited the annotation
  }
}
