// The status that the binder gives a claim, as merge patches of the fields that differ. Pure. Undefined: no field differs.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { isQuantity } from '../../api/quantity.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'

export type StatusPatch = Readonly<Record<string, unknown>>

/** Removes everything that describes a volume. */
export function statusWithoutVolume({ status = {} }: Claim, phase: 'Pending' | 'Lost'): StatusPatch | undefined {
  const patch: Record<string, unknown> = {}
  if (status.phase !== phase) patch.phase = phase
  for (const field of ['accessModes', 'capacity', 'currentVolumeAttributesClassName'] as const) {
    if (status[field] !== undefined) patch[field] = null
  }
  return undefinedIfEmpty(patch)
}

/**
 * Size and attributes class are copied once, when the claim becomes bound. A later difference means that the volume is
 * being expanded or modified, and the controllers that do so update the status.
 */
export function statusWithVolume({ status = {} }: Claim, volume: Volume): StatusPatch | undefined {
  const patch: Record<string, unknown> = {}
  const { accessModes = [], volumeAttributesClassName } = volume.spec ?? {}
  if (!sameModes(status.accessModes ?? [], accessModes)) patch.accessModes = accessModes
  if (status.phase !== 'Bound') {
    patch.phase = 'Bound'
    patch.capacity = replacing(status.capacity, capacityOf(volume))
  }
  if ((status.phase ?? 'Pending') === 'Pending') {
    const current = volumeAttributesClassName || null
    if ((status.currentVolumeAttributesClassName ?? null) !== current) patch.currentVolumeAttributesClassName = current
  }
  return undefinedIfEmpty(patch)
}

/** While the file system is smaller than the device, the claim's capacity is the size before the expansion. */
function capacityOf(volume: Volume): Record<string, string> {
  const before = annotationOf(volume, PRE_RESIZE_CAPACITY)
  const { capacity = {} } = volume.spec ?? {}
  return before !== undefined && isQuantity(before) ? { ...capacity, storage: before } : capacity
}

/** A merge patch merges maps, so keys to remove are set to null. */
const replacing = (old: Readonly<Record<string, string>> = {}, next: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(Object.keys(old).map((name) => [name, null])),
  ...next,
})

const sameModes = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((mode, index) => mode === b[index])

const undefinedIfEmpty = (patch: StatusPatch): StatusPatch | undefined =>
  Object.keys(patch).length > 0 ? patch : undefined
