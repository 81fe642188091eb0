// Validates the order of the amounts of one resource in a LimitRange item:
//   min <= defaultRequest <= default <= max,   1 <= maxLimitRequestRatio <= max/min
// default and defaultRequest must be equal for a resource that cannot be overcommitted.
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities, parseQuantity } from '../../quantity.ts'
import { isOvercommitAllowed } from '../shared/resource-names.ts'

interface ResourceLimits {
  name: string
  /** Path of the item. */
  field: string
  min: string | undefined
  max: string | undefined
  default: string | undefined
  defaultRequest: string | undefined
  ratio: string | undefined
  errors: FieldErrors
}

export function validateLimitOrder(limits: ResourceLimits): void {
  const { name, min, max, default: defaultLimit, defaultRequest, ratio, errors } = limits
  const fieldOf = (part: string) => `${limits.field}.${part}[${name}]`
  if (exceeds(min, max)) errors.invalid(fieldOf('min'), min, `min value ${min} is greater than max value ${max}`)
  if (exceeds(min, defaultRequest)) {
    errors.invalid(
      fieldOf('defaultRequest'),
      defaultRequest,
      `min value ${min} is greater than default request value ${defaultRequest}`,
    )
  }
  if (exceeds(defaultRequest, max)) {
    errors.invalid(
      fieldOf('defaultRequest'),
      defaultRequest,
      `default request value ${defaultRequest} is greater than max value ${max}`,
    )
  }
  if (exceeds(defaultRequest, defaultLimit)) {
    errors.invalid(
      fieldOf('defaultRequest'),
      defaultRequest,
      `default request value ${defaultRequest} is greater than default limit value ${defaultLimit}`,
    )
  }
  if (exceeds(min, defaultLimit)) {
    errors.invalid(fieldOf('default'), min, `min value ${min} is greater than default value ${defaultLimit}`)
  }
  if (exceeds(defaultLimit, max)) {
    errors.invalid(fieldOf('default'), max, `default value ${defaultLimit} is greater than max value ${max}`)
  }
  if (exceeds('1', ratio)) errors.invalid(fieldOf('maxLimitRequestRatio'), ratio, `ratio ${ratio} is less than 1`)
  const maxRatio = min === undefined || max === undefined ? undefined : ratioOf(max, min)
  if (ratio !== undefined && maxRatio !== undefined && ratioOf(ratio, '1') > maxRatio) {
    errors.invalid(
      fieldOf('maxLimitRequestRatio'),
      ratio,
      `ratio ${ratio} is greater than max/min = ${maxRatio.toFixed(6)}`,
    )
  }
  const isDifferent =
    defaultLimit !== undefined && defaultRequest !== undefined && compareQuantities(defaultLimit, defaultRequest) !== 0
  if (isDifferent && !isOvercommitAllowed(name)) {
    errors.invalid(
      fieldOf('defaultRequest'),
      defaultRequest,
      `default value ${defaultLimit} must equal to defaultRequest value ${defaultRequest} in ${name}`,
    )
  }
}

const exceeds = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && compareQuantities(a, b) > 0

const ratioOf = (a: string, b: string): number => Number(parseQuantity(a).nanos) / Number(parseQuantity(b).nanos)
