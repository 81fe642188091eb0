// Validates changes to the placement of a pod with scheduling gates. Requirements can be added to its node selector and
// required node affinity, but not changed or removed. Preferences can be changed.
import type { FieldErrors } from '../../field-errors.ts'
import { list } from '../../schema.ts'
import { isSameValue } from '../shared/changed-fields.ts'
import { type NodeSelectorTerm, nodeSelectorRequirement } from '../shared/references-schema.ts'
import type { PodSpec } from './pod-schema.ts'

export function validateNarrowedPlacement(newValue: PodSpec, oldValue: PodSpec, errors: FieldErrors): void {
  validateSelector(newValue.nodeSelector ?? {}, oldValue.nodeSelector ?? {}, errors)
  validateTerms(requiredTerms(newValue), requiredTerms(oldValue), errors)
}

/** Returns the old values of the fields that a gated pod may change. */
export function oldPlacement(oldValue: PodSpec, newValue: PodSpec): Partial<PodSpec> {
  const nodeAffinity = oldValue.affinity?.nodeAffinity
  const affinity = { ...newValue.affinity, nodeAffinity }
  const hasNoAffinity = !oldValue.affinity && !newValue.affinity?.podAffinity && !newValue.affinity?.podAntiAffinity
  return { nodeSelector: oldValue.nodeSelector, affinity: hasNoAffinity ? undefined : affinity } as Partial<PodSpec>
}

function validateSelector(
  newValue: Record<string, string>,
  oldValue: Record<string, string>,
  errors: FieldErrors,
): void {
  const hasOldLabels = Object.entries(oldValue).every(
    ([key, value]) => Object.hasOwn(newValue, key) && newValue[key] === value,
  )
  if (hasOldLabels) return
  const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  errors.invalid('spec.nodeSelector', newValue, detail)
}

const requiredTerms = ({ affinity }: PodSpec): readonly NodeSelectorTerm[] =>
  affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []

/** Rejects additional terms, because they would allow more nodes, and changes of terms other than additional requirements. */
function validateTerms(
  newValue: readonly NodeSelectorTerm[],
  oldValue: readonly NodeSelectorTerm[],
  errors: FieldErrors,
): void {
  const field = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  if (oldValue.length === 0) return
  if (newValue.length !== oldValue.length) {
    errors.invalid(field, newValue, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')
    return
  }
  for (const [index, term] of oldValue.entries()) {
    const newTerm = newValue[index] ?? {}
    if (!hasOnlyAdditions(newTerm, term)) {
      errors.invalid(`${field}[${index}]`, newTerm, 'only additions are allowed (no mutations or deletions)')
    }
  }
}

const requirements = list(nodeSelectorRequirement)
const TERM_FIELDS = ['matchExpressions', 'matchFields'] as const

function hasOnlyAdditions(newValue: NodeSelectorTerm, oldValue: NodeSelectorTerm): boolean {
  const matchedNoNode = TERM_FIELDS.every((fieldName) => !oldValue[fieldName]?.length)
  if (matchedNoNode && TERM_FIELDS.some((fieldName) => newValue[fieldName]?.length)) return false // a term without requirements matches no node
  return TERM_FIELDS.every((fieldName) => {
    const oldRequirements = oldValue[fieldName] ?? []
    return isSameValue(requirements, oldRequirements, (newValue[fieldName] ?? []).slice(0, oldRequirements.length))
  })
}
