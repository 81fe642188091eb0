// The status the binder gives a volume, as a merge patch: none when it is in that phase already, whatever it says
// about it, so that the reason of a failure stays for people to see.

import type { Volume } from '../../volumes/matching.ts'
import type { StatusPatch } from './claim-status.ts'

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed'

export function phasePatch({ status }: Volume, phase: VolumePhase, message?: string): StatusPatch | undefined {
  if (status?.phase === phase) return undefined
  if (message !== undefined) return { phase, message }
  return { phase, ...(status?.message === undefined ? {} : { message: null }) }
}
