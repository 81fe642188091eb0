// The topologies a storage class is restricted to: a list of terms, no two of which may say the same.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import type { TopologySelectorLabelRequirement, TopologySelectorTerm } from '../shared/references-schema.ts'

export function validateTopologyTerms(terms: readonly TopologySelectorTerm[] = [], errors: FieldErrors): void {
  const seen = new Set<string>(['[]']) // a term that says nothing is refused, in the words for a repetition
  terms.forEach((term, index) => {
    const field = `allowedTopologies[${index}].matchLabelExpressions`
    const meaning = validateTerm(term.matchLabelExpressions, field, errors)
    if (seen.has(meaning)) errors.duplicate(field, '')
    seen.add(meaning)
  })
}

/** Answers the term in a form that is equal for terms that mean the same, whatever their order. */
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
