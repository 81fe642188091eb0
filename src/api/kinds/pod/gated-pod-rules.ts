// Validates changes of the placement of a pod with scheduling gates. Requirements can be added to its node selector and
// required node affinity, but not changed or removed. Preferences can be changed.
import type { FieldErrors } from '../../field-errors.ts'
import { list } from '../../schema.ts'
import { isSameValue } from '../shared/changed-fields.ts'
import { type NodeSelectorTerm, nodeSelectorRequirement } from '../shared/references-schema.ts'
import type { PodSpec } from './pod-schema.ts'

export function validateNarrowedPlacement(after: PodSpec, before: PodSpec, errors: FieldErrors): void {
  validateSelector(after.nodeSelector ?? {}, before.nodeSelector ?? {}, errors)
  validateTerms(requiredTerms(after), requiredTerms(before), errors)
}

/** Returns the old values of the fields that a gated pod may change. */
export function oldPlacement(before: PodSpec, after: PodSpec): Partial<PodSpec> {
  const nodeAffinity = before.affinity?.nodeAffinity
  const affinity = { ...after.affinity, nodeAffinity }
  const hasNoAffinity = !before.affinity && !after.affinity?.podAffinity && !after.affinity?.podAntiAffinity
  return { nodeSelector: before.nodeSelector, affinity: hasNoAffinity ? undefined : affinity } as Partial<PodSpec>
}

function validateSelector(after: Record<string, string>, before: Record<string, string>, errors: FieldErrors): void {
  const areKept = Object.entries(before).every(([key, value]) => Object.hasOwn(after, key) && after[key] === value)
  if (areKept) return
  const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  errors.invalid('spec.nodeSelector', after, detail)
}

const requiredTerms = ({ affinity }: PodSpec): readonly NodeSelectorTerm[] =>
  affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []

/** Rejects additional terms, because they would allow more nodes, and changes of terms other than additional requirements. */
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
    const newTerm = after[index] ?? {}
    if (!hasOnlyAdditions(newTerm, term)) {
      errors.invalid(`${field}[${index}]`, newTerm, 'only additions are allowed (no mutations or deletions)')
    }
  }
}

const requirements = list(nodeSelectorRequirement)
const TERM_FIELDS = ['matchExpressions', 'matchFields'] as const

function hasOnlyAdditions(after: NodeSelectorTerm, before: NodeSelectorTerm): boolean {
  const matchedNoNode = TERM_FIELDS.every((fieldName) => !before[fieldName]?.length)
  if (matchedNoNode && TERM_FIELDS.some((fieldName) => after[fieldName]?.length)) return false // a term without requirements matches no node
  return TERM_FIELDS.every((fieldName) => {
    const oldRequirements = before[fieldName] ?? []
    return isSameValue(requirements, oldRequirements, (after[fieldName] ?? []).slice(0, oldRequirements.length))
  })
}
