import { describe, expect, it } from 'vitest'
import { FieldErrors } from '../../field-errors.ts'
import { validateNodeSelectorTerm } from './node-selector-rules.ts'
import type { NodeSelectorTerm } from './references-schema.ts'

function validate(term: object, { allowsInvalidValues = false } = {}): string[] {
  const errors = new FieldErrors()
  validateNodeSelectorTerm(term as NodeSelectorTerm, { field: 'term', allowsInvalidValues }, errors)
  return errors.list.map(({ field, message }) => `${field}: ${message}`)
}
const validateLabel = (requirement: object) => validate({ matchExpressions: [{ key: 'zone', ...requirement }] })
const validateField = (requirement: object) => validate({ matchFields: [{ key: 'metadata.name', ...requirement }] })

describe('validateNodeSelectorTerm', () => {
  it.each([
    [{ operator: 'In', values: ['a', 'b'] }],
    [{ operator: 'NotIn', values: [''] }],
    [{ operator: 'Exists' }],
    [{ operator: 'DoesNotExist' }],
    [{ operator: 'Gt', values: ['5'] }],
    [{ operator: 'Lt', values: ['5'] }],
  ])('accepts the label requirement %o', (requirement) => {
    expect(validateLabel(requirement)).toEqual([])
  })

  it.each([
    ["values: Required value: must be specified when `operator` is 'In' or 'NotIn'", { operator: 'In' }],
    [
      "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      { operator: 'Exists', values: ['a'] },
    ],
    [
      "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
      { operator: 'Gt', values: ['1', '2'] },
    ],
    ['operator: Invalid value: "Like": not a valid selector operator', { operator: 'Like' }],
  ])('rejects: %s', (message, requirement) => {
    expect(validateLabel(requirement)).toEqual([`term.matchExpressions[0].${message}`])
  })

  it('rejects invalid label keys and values', () => {
    expect(validate({ matchExpressions: [{ key: 'a b', operator: 'In', values: ['ok', 'not ok'] }] })).toEqual([
      expect.stringMatching(/^term\.matchExpressions\[0\]\.key: Invalid value: "a b"/),
      expect.stringMatching(/^term\.matchExpressions\[0\]\.values\[1\]: Invalid value: "not ok"/),
    ])
  })

  it('accepts invalid label values in a preference', () => {
    const term = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['not ok'] }] }
    expect(validate(term, { allowsInvalidValues: true })).toEqual([])
  })

  it('accepts only the field metadata.name, and only with one value', () => {
    expect(validateField({ operator: 'In', values: ['n1'] })).toEqual([])
    expect(validateField({ operator: 'In', values: ['n1', 'n2'] })).toEqual([
      "term.matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    ])
    expect(validateField({ operator: 'Exists' })).toEqual([
      'term.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
    ])
    expect(validate({ matchFields: [{ key: 'spec.podCIDR', operator: 'In', values: ['x'] }] })).toEqual([
      'term.matchFields[0].key: Invalid value: "spec.podCIDR": not a valid field selector key',
    ])
  })
})
