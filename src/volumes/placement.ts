// Parses the placement policy of a StorageClass. The scheduler scores the nodes with enough space for a new volume by this policy
// (scheduler/plugins/volume-binding/placement-score.ts), and `stowage why` shows it.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { CAPACITY_PREFERENCE, PLACEMENT } from './names.ts'

export type Placement =
  /** Most free space first. */
  | { readonly policy: 'spread' }
  /** Least free space first. */
  | { readonly policy: 'pack' }
  /** Least free space first among nodes on which this percentage of the storage stays free. */
  | { readonly policy: 'headroom'; readonly freePercent: number }

export type ParsedPlacement =
  | { readonly is: 'placement'; readonly placement: Placement }
  | { readonly is: 'invalid'; readonly message: string }

const FREE_PERCENT_DEFAULT = 20
const HEADROOM = /^headroom(?:=([1-9]\d?)%)?$/
export const PLACEMENT_FORMS = 'spread, pack, headroom or headroom=PERCENT%, e.g. headroom=30%'

export function parsePlacement(text: string): ParsedPlacement {
  if (text === 'spread' || text === 'pack') return { is: 'placement', placement: { policy: text } }
  const headroom = HEADROOM.exec(text)
  if (!headroom) return { is: 'invalid', message: `expected ${PLACEMENT_FORMS}` }
  const freePercent = headroom[1] === undefined ? FREE_PERCENT_DEFAULT : Number(headroom[1])
  return { is: 'placement', placement: { policy: 'headroom', freePercent } }
}

/** Returns the policy that the class sets, or undefined if it sets none. */
export function readPlacement(storageClass: Readonly<StorageClass>): ParsedPlacement | undefined {
  const text = annotationOf(storageClass, PLACEMENT) ?? annotationOf(storageClass, CAPACITY_PREFERENCE)
  return text === undefined ? undefined : parsePlacement(text)
}

export const formatPlacement = (placement: Placement): string =>
  placement.policy === 'headroom' ? `headroom=${placement.freePercent}%` : placement.policy
