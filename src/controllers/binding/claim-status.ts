// Builds merge patches of a claim's status; undefined if the status need not change. Pure.
import {
  conditionsWith,
  conditionsWithoutReadiness,
  type Readiness,
  readinessOf,
} from '../../api/kinds/claim/first-consumer.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { isQuantity } from '../../api/quantity.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'

export type StatusPatch = Readonly<Record<string, unknown>>

/** Returns a patch that sets the phase and removes access modes, capacity and the current attributes class. */
export function statusWithoutVolume({ status = {} }: Claim, phase: 'Pending' | 'Lost'): StatusPatch | undefined {
  const patch: Record<string, unknown> = {}
  if (status.phase !== phase) patch.phase = phase
  for (const field of ['accessModes', 'capacity', 'currentVolumeAttributesClassName'] as const) {
    if (status[field] !== undefined) patch[field] = null
  }
  return undefinedIfEmpty(patch)
}

/**
 * Returns a patch that sets the phase Bound, removes the condition ReadyForFirstConsumer, and copies the access modes, capacity
 * and attributes class of the volume. The condition is removed and the capacity copied only when the claim becomes bound, and
 * the class is copied only when a pending claim becomes bound: from then on, the controllers that expand or modify the volume
 * update capacity and class.
 */
export function statusWithVolume(claim: Claim, volume: Volume): StatusPatch | undefined {
  const { status = {} } = claim
  const patch: Record<string, unknown> = {}
  const { accessModes = [], volumeAttributesClassName } = volume.spec ?? {}
  if (!hasSameModes(status.accessModes ?? [], accessModes)) patch.accessModes = accessModes
  if (status.phase !== 'Bound') {
    patch.phase = 'Bound'
    patch.capacity = replaceMap(status.capacity, capacityOf(volume))
    if (readinessOf(claim)) patch.conditions = nullIfEmpty(conditionsWithoutReadiness(claim))
  }
  if ((status.phase ?? 'Pending') === 'Pending') {
    const className = volumeAttributesClassName || null
    if ((status.currentVolumeAttributesClassName ?? null) !== className)
      patch.currentVolumeAttributesClassName = className
  }
  return undefinedIfEmpty(patch)
}

/**
 * Returns a patch with the condition ReadyForFirstConsumer. With `onlyIfPresent`, the condition is not added to a claim
 * without it.
 */
export function statusWithReadiness(
  claim: Claim,
  readiness: Readiness | undefined,
  { nowMs, onlyIfPresent }: { readonly nowMs: number; readonly onlyIfPresent: boolean },
): StatusPatch | undefined {
  if (!readiness || (onlyIfPresent && !readinessOf(claim))) return undefined
  const conditions = conditionsWith(claim, readiness, nowMs)
  return conditions && { conditions }
}

/** Until the file system is expanded, the claim's capacity is the size before the expansion. */
function capacityOf(volume: Volume): Record<string, string> {
  const preResizeSize = annotationOf(volume, PRE_RESIZE_CAPACITY)
  const { capacity = {} } = volume.spec ?? {}
  return preResizeSize !== undefined && isQuantity(preResizeSize) ? { ...capacity, storage: preResizeSize } : capacity
}

/** Sets keys that are not in `next` to null, because a merge patch merges maps. */
const replaceMap = (old: Readonly<Record<string, string>> = {}, next: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(Object.keys(old).map((name) => [name, null])),
  ...next,
})

const hasSameModes = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((mode, index) => mode === b[index])

const nullIfEmpty = <T>(list: readonly T[]): readonly T[] | null => (list.length > 0 ? list : null)

const undefinedIfEmpty = (patch: StatusPatch): StatusPatch | undefined =>
  Object.keys(patch).length > 0 ? patch : undefined
