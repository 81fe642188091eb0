// Validates spec.scopes and spec.scopeSelector of a ResourceQuota. Each scope supports only some of the standard resource
// names; non-standard resource names are always accepted.
import type { FieldErrors } from '../../field-errors.ts'
import type { Infer } from '../../schema.ts'
import { IO_QUOTA_RESOURCES } from '../shared/resource-names.ts'
import type { scopeSelector } from './resource-quota-schema.ts'

interface ScopesInput {
  scopes: readonly string[]
  /** The standard resource names in spec.hard. */
  standardNames: readonly string[]
  field: string
  errors: FieldErrors
}

export function validateScopes({ scopes, standardNames, field, errors }: ScopesInput): void {
  for (const scope of scopes) {
    if (!isSupportedScope(scope)) errors.invalid(field, scopes, 'unsupported scope')
    for (const name of standardNames) {
      if (!supportsResource(scope, name)) errors.invalid(field, scopes, 'unsupported scope applied to resource')
    }
  }
  validateConflicts(scopes, field, scopes, errors)
}

interface ScopeSelectorInput {
  selector: Infer<typeof scopeSelector>
  standardNames: readonly string[]
  field: string
  errors: FieldErrors
}

export function validateScopeSelector({ selector, standardNames, field, errors }: ScopeSelectorInput): void {
  const path = `${field}.matchExpressions`
  const expressions = selector.matchExpressions ?? []
  for (const { scopeName, operator, values = [] } of expressions) {
    if (!isSupportedScope(scopeName)) errors.invalid(`${path}.scopeName`, scopeName, 'unsupported scope')
    for (const name of standardNames) {
      if (!supportsResource(scopeName, name)) errors.invalid(path, selector, 'unsupported scope applied to resource')
    }
    if (EXISTS_ONLY_SCOPES.includes(scopeName) && operator !== 'Exists') {
      errors.invalid(`${path}.operator`, operator, EXISTS_REQUIRED_MESSAGE)
    }
    validateOperator(operator, values, path, errors)
  }
  validateConflicts(
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
      if (values.length === 0) errors.required(`${path}.values`, VALUES_REQUIRED_MESSAGE)
      return
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) errors.invalid(`${path}.values`, values, NO_VALUES_MESSAGE)
      return
    default:
      errors.invalid(`${path}.operator`, operator, 'not a valid selector operator')
  }
}

const VALUES_REQUIRED_MESSAGE = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
const NO_VALUES_MESSAGE = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"

function validateConflicts(
  scopes: readonly string[],
  field: string,
  reportedValue: unknown,
  errors: FieldErrors,
): void {
  for (const pair of CONFLICTING_SCOPES) {
    if (pair.every((scope) => scopes.includes(scope))) errors.invalid(field, reportedValue, 'conflicting scopes')
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

const isSupportedScope = (scope: string): boolean => Object.hasOwn(RESOURCES_BY_SCOPE, scope)
const supportsResource = (scope: string, resource: string): boolean =>
  !isSupportedScope(scope) || RESOURCES_BY_SCOPE[scope]!.includes(resource)

const CONFLICTING_SCOPES = [
  ['BestEffort', 'NotBestEffort'],
  ['NotTerminating', 'Terminating'],
] as const

const EXISTS_ONLY_SCOPES = ['Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort', 'CrossNamespacePodAffinity']
const EXISTS_REQUIRED_MESSAGE =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, " +
  'ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity'
