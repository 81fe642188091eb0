// How fast volumes of one driver may be changed, where an operator says so: so many new changes in so much time, and a
// rest for a volume after each. What one edit of a claim asks for, size and attributes, is one change and not held up in
// between. When a volume was last changed, and for which wish, it says itself: a restart forgets nothing.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Happening } from '../../runtime/index.ts'
import type { Subject } from './change.ts'

export interface PaceOptions {
  /** At most this many changes begin in this time. Absent: any number. */
  readonly budget?: ChangeBudget
  /** Between the end of one change of a volume and the beginning of the next. Default 0. */
  readonly cooldownMs?: number
}

export interface ChangeBudget {
  readonly changes: number
  readonly periodMs: number
}

export interface Delay {
  readonly afterMs: number
  readonly because: string
  /** It was not told for this wish before. */
  readonly isNews: boolean
}

export interface Pace {
  /** Nothing: it may begin now, and is counted. */
  begin(subject: Subject): Delay | undefined
  /** The driver has changed the volume. What is returned belongs on it, in the same write. */
  changed(subject: Subject): Readonly<Record<string, string>>
}

export const CHANGED = 'changing.stowage.dev/changed'

/** Beyond this many volumes, the one looked at longest ago is known by its annotation only. */
const REMEMBERED_MAX = 100_000

interface Known {
  /** What was let through last. */
  readonly wish: string
  readonly changedMs?: number
  /** The wish that people know to be waiting. */
  readonly told?: string
}

export function createPace(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>, options: PaceOptions): Pace {
  const { budget, cooldownMs = 0 } = options
  const volumes = new LruCache<string, Known>(REMEMBERED_MAX)
  const places = budget && createPlaces(clock, budget)

  const knownOf = ({ metadata }: Readonly<PersistentVolume>): Known | undefined =>
    volumes.get(metadata.uid ?? '') ?? written(metadata.annotations?.[CHANGED])

  return {
    begin({ claim, volume }) {
      const { name = '', uid = '' } = volume.metadata
      const wish = wishOf(claim)
      const known = knownOf(volume)
      if (known?.wish === wish) return undefined // the next step of the same change, or another try
      const restMs = known?.changedMs === undefined ? 0 : known.changedMs + cooldownMs - clock.nowMs()
      const afterMs = restMs > 0 ? restMs : (places?.take() ?? 0)
      if (afterMs <= 0) {
        volumes.set(uid, { wish, ...(known?.changedMs === undefined ? {} : { changedMs: known.changedMs }) })
        return undefined
      }
      const until = `${new Date(clock.nowMs() + afterMs).toISOString().slice(0, 19)}Z`
      const because =
        restMs > 0
          ? `volume ${name} was changed a short time ago and is not changed again before ${until}`
          : `so many volumes were changed lately that ${name} has to wait until ${until}`
      const isNews = known?.told !== wish
      volumes.set(uid, { wish: '', ...known, told: wish })
      return { afterMs, because, isNews }
    },
    changed({ claim, volume }): Readonly<Record<string, string>> {
      if (cooldownMs === 0) return {}
      const known = { wish: wishOf(claim), changedMs: clock.nowMs() }
      volumes.set(volume.metadata.uid ?? '', known)
      return { [CHANGED]: JSON.stringify(known) }
    },
  }
}

export const delayed = ({ because }: Delay): Happening => ({
  type: 'Normal',
  reason: 'VolumeChangeDelayed',
  message: because,
})

/** A bucket of changes that refills evenly. */
function createPlaces(clock: Pick<Clock, 'monotonicMs'>, { changes, periodMs }: ChangeBudget) {
  let left = changes
  let atMs = clock.monotonicMs()
  return {
    /** Zero, and one is taken; or how long until there is one. */
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

/** All that a user can change about a volume: one edit, one text. */
const wishOf = ({ spec }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    amountOf(spec?.resources?.requests, 'storage') ?? null,
    spec?.volumeAttributesClassName || null,
    ...IO_RESOURCES.map((name) => amountOf(spec?.resources?.requests, name) ?? null),
  ])

function written(text: string | undefined): Known | undefined {
  try {
    const { wish, changedMs } = JSON.parse(text ?? '{}')
    return typeof wish === 'string' && typeof changedMs === 'number' ? { wish, changedMs } : undefined
  } catch {
    return undefined // someone wrote on it by hand: as if it were not there
  }
}
