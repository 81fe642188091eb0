// The status that the binder gives a volume, as a merge patch. Pure. Undefined if the volume is in that phase already,
// even if the message differs, so that the message of a failure is kept.
import type { Volume } from '../../volumes/matching.ts'
import type { StatusPatch } from './claim-status.ts'

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed'

export function phasePatch({ status }: Volume, phase: VolumePhase, message?: string): StatusPatch | undefined {
  if (status?.phase === phase) return undefined
  if (message !== undefined) return { phase, message }
  return { phase, ...(status?.message === undefined ? {} : { message: null }) }
}
