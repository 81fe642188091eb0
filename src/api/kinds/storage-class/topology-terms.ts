// Validates allowedTopologies of a StorageClass, in which no two terms may be equivalent.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import type { TopologySelectorLabelRequirement, TopologySelectorTerm } from '../shared/references-schema.ts'

export function validateTopologyTerms(terms: readonly TopologySelectorTerm[] = [], errors: FieldErrors): void {
  const seenTerms = new Set<string>(['[]']) // Kubernetes reports an empty term as a duplicate
  terms.forEach((term, index) => {
    const field = `allowedTopologies[${index}].matchLabelExpressions`
    const canonical = validateTerm(term.matchLabelExpressions, field, errors)
    if (seenTerms.has(canonical)) errors.duplicate(field, '')
    seenTerms.add(canonical)
  })
}

/** Validates a term and returns its canonical form, which is the same for equivalent terms. */
function validateTerm(
  requirements: readonly TopologySelectorLabelRequirement[] = [],
  field: string,
  errors: FieldErrors,
): string {
  const valuesByKey = new Map<string, string[]>()
  requirements.forEach(({ key, values }, index) => {
    const path = `${field}[${index}]`
    const distinctValues = new Set<string>()
    if (values.length === 0) errors.required(`${path}.values`)
    values.forEach((value, valueIndex) => {
      if (distinctValues.has(value)) errors.duplicate(`${path}.values[${valueIndex}]`, value)
      distinctValues.add(value)
    })
    errors.invalidAll(`${path}.key`, key, qualifiedNameProblems(key))
    if (valuesByKey.has(key)) errors.duplicate(`${path}.key`, key)
    valuesByKey.set(key, [...distinctValues].sort())
  })
  return JSON.stringify([...valuesByKey].sort(([a], [b]) => (a < b ? -1 : 1)))
}
