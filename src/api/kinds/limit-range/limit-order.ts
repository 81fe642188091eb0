// Validates the order of the amounts of one resource in a LimitRange item:
//   min <= defaultRequest <= default <= max,   1 <= maxLimitRequestRatio <= max/min
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities, parseQuantity } from '../../quantity.ts'
import { isOvercommitAllowed } from '../shared/resource-names.ts'

interface LimitsOfOneResource {
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

export function validateOrder(limits: LimitsOfOneResource): void {
  const { name, min, max, default: byDefault, defaultRequest, ratio, errors } = limits
  const at = (part: string) => `${limits.field}.${part}[${name}]`
  if (exceeds(min, max)) errors.invalid(at('min'), min, `min value ${min} is greater than max value ${max}`)
  if (exceeds(min, defaultRequest)) {
    errors.invalid(
      at('defaultRequest'),
      defaultRequest,
      `min value ${min} is greater than default request value ${defaultRequest}`,
    )
  }
  if (exceeds(defaultRequest, max)) {
    errors.invalid(
      at('defaultRequest'),
      defaultRequest,
      `default request value ${defaultRequest} is greater than max value ${max}`,
    )
  }
  if (exceeds(defaultRequest, byDefault)) {
    errors.invalid(
      at('defaultRequest'),
      defaultRequest,
      `default request value ${defaultRequest} is greater than default limit value ${byDefault}`,
    )
  }
  if (exceeds(min, byDefault)) {
    errors.invalid(at('default'), min, `min value ${min} is greater than default value ${byDefault}`)
  }
  if (exceeds(byDefault, max)) {
    errors.invalid(at('default'), max, `default value ${byDefault} is greater than max value ${max}`)
  }
  if (exceeds('1', ratio)) errors.invalid(at('maxLimitRequestRatio'), ratio, `ratio ${ratio} is less than 1`)
  const widest = min === undefined || max === undefined ? undefined : ratioOf(max, min)
  if (ratio !== undefined && widest !== undefined && ratioOf(ratio, '1') > widest) {
    errors.invalid(at('maxLimitRequestRatio'), ratio, `ratio ${ratio} is greater than max/min = ${widest.toFixed(6)}`)
  }
  const differ = byDefault !== undefined && defaultRequest !== undefined && compareQuantities(byDefault, defaultRequest)
  if (differ && !isOvercommitAllowed(name)) {
    errors.invalid(
      at('defaultRequest'),
      defaultRequest,
      `default value ${byDefault} must equal to defaultRequest value ${defaultRequest} in ${name}`,
    )
  }
}

const exceeds = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && compareQuantities(a, b) > 0

const ratioOf = (a: string, b: string): number => Number(parseQuantity(a).nanos) / Number(parseQuantity(b).nanos)
