// Determines the items that a change to a volume may affect. Pure. A volume in a segment affects all classes in this segment,
// because they may share a storage pool. A volume without node affinity affects its class in all segments, and all classes in
// the segment without labels.
import { volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { NodeSelectorTerm } from '../../api/kinds/shared/references-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { ALL_NODES, type Segment, segmentOf } from './segments.ts'

export type AffectedItems =
  | { readonly is: 'segment'; readonly id: string }
  | { readonly is: 'class'; readonly name: string }
  | { readonly is: 'all' }

export const ALL_ITEMS: AffectedItems = { is: 'all' }

export const itemsOfSegment = ({ id }: Segment): AffectedItems => ({ is: 'segment', id })

/** Skips terms that do not describe a single segment. The next poll refreshes their items. */
export function affectedItemsOf(volume: Readonly<PersistentVolume>): AffectedItems[] {
  const requiredTerms = volume.spec?.nodeAffinity?.required
  if (!requiredTerms) return [itemsOfSegment(ALL_NODES), { is: 'class', name: volumeClassName(volume) }]
  return requiredTerms.nodeSelectorTerms.flatMap((term) => {
    const segment = segmentOfTerm(term)
    return segment ? [itemsOfSegment(segment)] : []
  })
}

function segmentOfTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): Segment | undefined {
  if (matchFields.length > 0 || matchExpressions.length === 0) return undefined
  const isPlain = matchExpressions.every(({ operator, values }) => operator === 'In' && values?.length === 1)
  return isPlain
    ? segmentOf(Object.fromEntries(matchExpressions.map(({ key, values }) => [key, values![0]!])))
    : undefined
}
