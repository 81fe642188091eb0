// Which part of what is published a change may have touched: a segment with all its classes, since they may share a pool,
// or a class with all its segments, when nobody says where a volume lies.
import { volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { NodeSelectorTerm } from '../../api/kinds/shared/references-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { EVERYWHERE, type Segment, segmentOf } from './segments.ts'

export type Place =
  | { readonly is: 'segment'; readonly id: string }
  | { readonly is: 'class'; readonly name: string }
  | { readonly is: 'all' }

export const ALL: Place = { is: 'all' }

export const atSegment = ({ id }: Segment): Place => ({ is: 'segment', id })

/** A term that is not the very labels of a segment touches none; what it means is found by the next poll. */
export function placesOf(volume: Readonly<PersistentVolume>): Place[] {
  const required = volume.spec?.nodeAffinity?.required
  if (!required) return [atSegment(EVERYWHERE), { is: 'class', name: volumeClassName(volume) }]
  return required.nodeSelectorTerms.flatMap((term) => {
    const segment = segmentOfTerm(term)
    return segment ? [atSegment(segment)] : []
  })
}

function segmentOfTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): Segment | undefined {
  if (matchFields.length > 0 || matchExpressions.length === 0) return undefined
  const isPlain = matchExpressions.every(({ operator, values }) => operator === 'In' && values?.length === 1)
  return isPlain
    ? segmentOf(Object.fromEntries(matchExpressions.map(({ key, values }) => [key, values![0]!])))
    : undefined
}
