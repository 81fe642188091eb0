// Builds the merge patch of a volume's status. Returns undefined if the volume has that phase already, even if the
// message differs, so that the message of the first failure is kept. Pure.
import type { Volume } from '../../volumes/matching.ts'
import type { StatusPatch } from './claim-status.ts'

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed'

export function phasePatch({ status }: Volume, phase: VolumePhase, message?: string): StatusPatch | undefined {
  if (status?.phase === phase) return undefined
  if (message !== undefined) return { phase, message }
  return { phase, ...(status?.message === undefined ? {} : { message: null }) }
}
