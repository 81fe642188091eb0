// Validates spec.scopes and spec.scopeSelector of a ResourceQuota. A scope applies only to resources whose objects have
// that property; non-standard resource names are always accepted.
import type { FieldErrors } from '../../field-errors.ts'
import type { Infer } from '../../schema.ts'
import { IO_QUOTA_RESOURCES } from '../shared/resource-names.ts'
import type { scopeSelector } from './resource-quota-schema.ts'

interface ScopesUnderCheck {
  scopes: readonly string[]
  /** The standard resource names among spec.hard. */
  standardNames: readonly string[]
  field: string
  errors: FieldErrors
}

export function validateScopes({ scopes, standardNames, field, errors }: ScopesUnderCheck): void {
  for (const scope of scopes) {
    if (!isKnown(scope)) errors.invalid(field, scopes, 'unsupported scope')
    for (const name of standardNames) {
      if (!fits(scope, name)) errors.invalid(field, scopes, 'unsupported scope applied to resource')
    }
  }
  validateContradiction(scopes, field, scopes, errors)
}

interface SelectorUnderCheck {
  selector: Infer<typeof scopeSelector>
  standardNames: readonly string[]
  field: string
  errors: FieldErrors
}

export function validateScopeSelector({ selector, standardNames, field, errors }: SelectorUnderCheck): void {
  const path = `${field}.matchExpressions`
  const expressions = selector.matchExpressions ?? []
  for (const { scopeName, operator, values = [] } of expressions) {
    if (!isKnown(scopeName)) errors.invalid(`${path}.scopeName`, scopeName, 'unsupported scope')
    for (const name of standardNames) {
      if (!fits(scopeName, name)) errors.invalid(path, selector, 'unsupported scope applied to resource')
    }
    if (EXISTS_ONLY.includes(scopeName) && operator !== 'Exists') {
      errors.invalid(`${path}.operator`, operator, MUST_BE_EXISTS)
    }
    validateOperator(operator, values, path, errors)
  }
  validateContradiction(
    expressions.map(({ scopeName }) => scopeName),
    path,
    null,
    errors,
  )
}

function validateOperator(operator: string, values: readonly string[], path: string, errors: FieldErrors): void {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) errors.required(`${path}.values`, NEEDS_VALUES)
      return
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) errors.invalid(`${path}.values`, values, TAKES_NO_VALUES)
      return
    default:
      errors.invalid(`${path}.operator`, operator, 'not a valid selector operator')
  }
}

const NEEDS_VALUES = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
const TAKES_NO_VALUES = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"

function validateContradiction(scopes: readonly string[], field: string, shown: unknown, errors: FieldErrors): void {
  for (const pair of CONTRADICTIONS) {
    if (pair.every((scope) => scopes.includes(scope))) errors.invalid(field, shown, 'conflicting scopes')
  }
}

const POD_RESOURCES = [
  'pods',
  'cpu',
  'memory',
  'limits.cpu',
  'limits.memory',
  'requests.cpu',
  'requests.memory',
] as const

const RESOURCES_BY_SCOPE: Readonly<Record<string, readonly string[]>> = {
  Terminating: POD_RESOURCES,
  NotTerminating: POD_RESOURCES,
  BestEffort: ['pods'],
  NotBestEffort: POD_RESOURCES,
  PriorityClass: POD_RESOURCES,
  CrossNamespacePodAffinity: POD_RESOURCES,
  VolumeAttributesClass: ['persistentvolumeclaims', 'requests.storage', ...IO_QUOTA_RESOURCES],
}

const isKnown = (scope: string): boolean => Object.hasOwn(RESOURCES_BY_SCOPE, scope)
const fits = (scope: string, resource: string): boolean =>
  !isKnown(scope) || RESOURCES_BY_SCOPE[scope]!.includes(resource)

const CONTRADICTIONS = [
  ['BestEffort', 'NotBestEffort'],
  ['NotTerminating', 'Terminating'],
] as const

const EXISTS_ONLY = ['Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort', 'CrossNamespacePodAffinity']
const MUST_BE_EXISTS =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, " +
  'ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity'
