// Validates tolerations and the effects of taints.
import type { FieldErrors } from '../../field-errors.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../names.ts'
import type { Toleration } from './pod-schema.ts'

const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

export function validateTaintEffect(effect: string, field: string, errors: FieldErrors): void {
  if (!TAINT_EFFECTS.includes(effect)) errors.notSupported(field, effect, TAINT_EFFECTS)
}

export function validateTolerations(tolerations: readonly Toleration[], field: string, errors: FieldErrors): void {
  tolerations.forEach((toleration, i) => {
    validateToleration(toleration, `${field}[${i}]`, errors)
  })
}

function validateToleration(toleration: Toleration, field: string, errors: FieldErrors): void {
  const { key = '', operator = '' as string, value = '', effect, tolerationSeconds } = toleration
  if (key !== '') errors.invalidAll(`${field}.key`, key, qualifiedNameProblems(key))
  if (key === '' && operator !== 'Exists') {
    errors.invalid(
      `${field}.operator`,
      operator,
      'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    )
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    errors.invalid(`${field}.effect`, effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set")
  }
  validateOperator(operator, value, field, errors)
  if (effect !== undefined) validateTaintEffect(effect, `${field}.effect`, errors)
}

function validateOperator(operator: string, value: string, field: string, errors: FieldErrors): void {
  switch (operator) {
    case '':
    case 'Equal': {
      const problems = labelValueProblems(value)
      if (problems.length > 0) errors.invalid(`${field}.operator`, value, problems.join(';'))
      return
    }
    case 'Exists':
      if (value !== '') errors.invalid(`${field}.operator`, value, "value must be empty when `operator` is 'Exists'")
      return
    case 'Gt':
    case 'Lt':
      if (!/^(0|-?[1-9][0-9]*)$/.test(value))
        errors.invalid(`${field}.value`, value, 'must be a valid decimal integer in canonical form')
      return
    default:
      errors.notSupported(`${field}.operator`, operator, ['Equal', 'Exists'])
  }
}
