// Validates node selectors of pods and volumes. A node selector has terms with requirements on the labels and the name of a
// node.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems, labelValueProblems, qualifiedNameProblems } from '../../names.ts'
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from './references-schema.ts'

export function validateNodeSelector(selector: NodeSelector, field: string, errors: FieldErrors): void {
  const termsField = `${field}.nodeSelectorTerms`
  if (selector.nodeSelectorTerms.length === 0) errors.required(termsField, 'must have at least one node selector term')
  for (const [index, term] of selector.nodeSelectorTerms.entries()) {
    validateNodeSelectorTerm(term, { field: `${termsField}[${index}]`, allowsInvalidValues: false }, errors)
  }
}

export interface TermOptions {
  readonly field: string
  /** Whether to accept values that no label can have. Preferences accept them, because such values match no node. */
  readonly allowsInvalidValues: boolean
}

export function validateNodeSelectorTerm(
  term: NodeSelectorTerm,
  { field, allowsInvalidValues }: TermOptions,
  errors: FieldErrors,
): void {
  for (const [index, requirement] of (term.matchExpressions ?? []).entries()) {
    validateLabelRequirement(requirement, { field: `${field}.matchExpressions[${index}]`, allowsInvalidValues }, errors)
  }
  for (const [index, requirement] of (term.matchFields ?? []).entries()) {
    validateFieldRequirement(requirement, `${field}.matchFields[${index}]`, errors)
  }
}

function validateLabelRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  { field, allowsInvalidValues }: TermOptions,
  errors: FieldErrors,
): void {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        errors.required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
      }
      break
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        errors.forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
      }
      break
    case 'Gt':
    case 'Lt':
      if (values.length !== 1) {
        errors.required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")
      }
      break
    default:
      errors.invalid(`${field}.operator`, operator, 'not a valid selector operator')
  }
  errors.invalidAll(`${field}.key`, key, qualifiedNameProblems(key))
  if (allowsInvalidValues) return
  for (const [index, value] of values.entries()) {
    errors.invalidAll(`${field}.values[${index}]`, value, labelValueProblems(value))
  }
}

function validateFieldRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  field: string,
  errors: FieldErrors,
): void {
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.invalid(`${field}.operator`, operator, 'not a valid selector operator')
  } else if (values.length !== 1) {
    errors.required(
      `${field}.values`,
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    )
  }
  if (key !== 'metadata.name') {
    errors.invalid(`${field}.key`, key, 'not a valid field selector key')
    return
  }
  for (const [index, value] of values.entries()) {
    errors.invalidAll(`${field}.values[${index}]`, value, dns1123SubdomainProblems(value))
  }
}
