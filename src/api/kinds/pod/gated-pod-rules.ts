// Validates changes of the placement of a pod with scheduling gates: requirements can be added to its node selector and
// required node affinity, but not removed or changed. Preferences can change freely.
import type { FieldErrors } from '../../field-errors.ts'
import { list } from '../../schema.ts'
import { sameValue } from '../shared/changed-fields.ts'
import { type NodeSelectorTerm, nodeSelectorRequirement } from '../shared/references-schema.ts'
import type { PodSpec } from './pod-schema.ts'

export function validateNarrowedPlacement(after: PodSpec, before: PodSpec, errors: FieldErrors): void {
  validateSelector(after.nodeSelector ?? {}, before.nodeSelector ?? {}, errors)
  validateTerms(requiredTerms(after), requiredTerms(before), errors)
}

/** The old values of the fields that a gated pod may change. */
export function withPlacementOf(before: PodSpec, after: PodSpec): Partial<PodSpec> {
  const nodeAffinity = before.affinity?.nodeAffinity
  const affinity = { ...after.affinity, nodeAffinity }
  const nothingLeft = !before.affinity && !after.affinity?.podAffinity && !after.affinity?.podAntiAffinity
  return { nodeSelector: before.nodeSelector, affinity: nothingLeft ? undefined : affinity } as Partial<PodSpec>
}

function validateSelector(after: Record<string, string>, before: Record<string, string>, errors: FieldErrors): void {
  const kept = Object.entries(before).every(([key, value]) => Object.hasOwn(after, key) && after[key] === value)
  if (kept) return
  const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  errors.invalid('spec.nodeSelector', after, detail)
}

const requiredTerms = ({ affinity }: PodSpec): readonly NodeSelectorTerm[] =>
  affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []

/** Terms are alternatives, so an additional term would allow more nodes. */
function validateTerms(
  after: readonly NodeSelectorTerm[],
  before: readonly NodeSelectorTerm[],
  errors: FieldErrors,
): void {
  const field = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  if (before.length === 0) return
  if (after.length !== before.length) {
    errors.invalid(field, after, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')
    return
  }
  for (const [index, term] of before.entries()) {
    const next = after[index] ?? {}
    if (!onlyAdds(next, term)) {
      errors.invalid(`${field}[${index}]`, next, 'only additions are allowed (no mutations or deletions)')
    }
  }
}

const requirements = list(nodeSelectorRequirement)
const PARTS = ['matchExpressions', 'matchFields'] as const

function onlyAdds(after: NodeSelectorTerm, before: NodeSelectorTerm): boolean {
  const selectedNothing = PARTS.every((part) => !before[part]?.length)
  if (selectedNothing && PARTS.some((part) => after[part]?.length)) return false // a term without requirements matches no node
  return PARTS.every((part) => {
    const kept = before[part] ?? []
    return sameValue(requirements, kept, (after[part] ?? []).slice(0, kept.length))
  })
}
