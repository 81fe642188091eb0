// Validates allowedTopologies of a StorageClass: no two terms may be equivalent.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import type { TopologySelectorLabelRequirement, TopologySelectorTerm } from '../shared/references-schema.ts'

export function validateTopologyTerms(terms: readonly TopologySelectorTerm[] = [], errors: FieldErrors): void {
  const seen = new Set<string>(['[]']) // Kubernetes reports an empty term as a duplicate
  terms.forEach((term, index) => {
    const field = `allowedTopologies[${index}].matchLabelExpressions`
    const canonical = validateTerm(term.matchLabelExpressions, field, errors)
    if (seen.has(canonical)) errors.duplicate(field, '')
    seen.add(canonical)
  })
}

/** Returns the canonical form of the term, which is the same for equivalent terms. */
function validateTerm(
  requirements: readonly TopologySelectorLabelRequirement[] = [],
  field: string,
  errors: FieldErrors,
): string {
  const valuesByKey = new Map<string, string[]>()
  requirements.forEach(({ key, values }, index) => {
    const at = `${field}[${index}]`
    const distinct = new Set<string>()
    if (values.length === 0) errors.required(`${at}.values`)
    values.forEach((value, nth) => {
      if (distinct.has(value)) errors.duplicate(`${at}.values[${nth}]`, value)
      distinct.add(value)
    })
    errors.invalidAll(`${at}.key`, key, qualifiedNameProblems(key))
    if (valuesByKey.has(key)) errors.duplicate(`${at}.key`, key)
    valuesByKey.set(key, [...distinct].sort())
  })
  return JSON.stringify([...valuesByKey].sort(([a], [b]) => (a < b ? -1 : 1)))
}
