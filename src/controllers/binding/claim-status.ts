// The status the binder gives a claim, as merge patches: what is right already is left out, and where all of it is,
// there is no patch.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { isQuantity } from '../../api/quantity.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'

export type StatusPatch = Readonly<Record<string, unknown>>

/** Without a volume, nothing is known of one. */
export function statusWithoutVolume({ status = {} }: Claim, phase: 'Pending' | 'Lost'): StatusPatch | undefined {
  const patch: Record<string, unknown> = {}
  if (status.phase !== phase) patch.phase = phase
  for (const field of ['accessModes', 'capacity', 'currentVolumeAttributesClassName'] as const) {
    if (status[field] !== undefined) patch[field] = null
  }
  return nothingIn(patch)
}

/**
 * Size and attributes class are taken over when the claim becomes bound, and never again: from then on a difference
 * means that a change is under way, which is for the controllers that make it to tell.
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
  return nothingIn(patch)
}

/** While the file system has yet to follow the device, what the claim has is the size before. */
function capacityOf(volume: Volume): Record<string, string> {
  const before = annotationOf(volume, PRE_RESIZE_CAPACITY)
  const { capacity = {} } = volume.spec ?? {}
  return before !== undefined && isQuantity(before) ? { ...capacity, storage: before } : capacity
}

/** A merge patch adds to a map; what is no longer in it must be named. */
const replacing = (old: Readonly<Record<string, string>> = {}, next: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(Object.keys(old).map((name) => [name, null])),
  ...next,
})

const sameModes = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((mode, index) => mode === b[index])

const nothingIn = (patch: StatusPatch): StatusPatch | undefined => (Object.keys(patch).length > 0 ? patch : undefined)
