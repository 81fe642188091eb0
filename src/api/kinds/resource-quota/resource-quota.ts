// Declares ResourceQuota: the limits of a namespace by resource. Quota admission in the API server charges usage in the
// transaction of the write.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { normalizeThroughput } from '../../throughput.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import {
  isIoQuotaResource,
  isStandardQuotaResource,
  isThroughputName,
  validateQuotaResourceName,
  validateResourceAmount,
} from '../shared/resource-names.ts'
import { validateScopeSelector, validateScopes } from './quota-scopes.ts'
import { type ResourceQuota, resourceQuota } from './resource-quota-schema.ts'

export const resourceQuotaKind = defineKind<ResourceQuota>({
  group: '',
  versions: ['v1'],
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  singular: 'resourcequota',
  shortNames: ['quota'],
  namespaced: true,
  type: resourceQuota,

  nameErrors: dns1123SubdomainProblems,
  defaults(object) {
    const hard = object.spec?.hard ?? {}
    for (const name of Object.keys(hard).filter(isThroughputName)) hard[name] = normalizeThroughput(hard[name]!)
  },
  validate(object, errors, context, old) {
    const spec = object.spec ?? {}
    validateAmounts(spec.hard, 'spec.hard', errors)
    rejectGatedIoResources(spec.hard, old?.spec?.hard, errors, context)
    const standardNames = Object.keys(spec.hard ?? {})
      .filter(isStandardQuotaResource)
      .sort()
    validateScopes({ scopes: spec.scopes ?? [], standardNames, field: 'spec.scopes', errors })
    if (spec.scopeSelector) {
      validateScopeSelector({ selector: spec.scopeSelector, standardNames, field: 'spec.scopeSelector', errors })
    }
  },
  validateUpdate(next, old, errors) {
    const nextScopes = new Set<string>(next.spec?.scopes ?? [])
    const oldScopes = new Set<string>(old.spec?.scopes ?? [])
    const isSame = nextScopes.size === oldScopes.size && [...oldScopes].every((scope) => nextScopes.has(scope))
    if (!isSame) errors.invalid('spec.scopes', next.spec?.scopes ?? null, 'field is immutable')
  },
  status: {
    acceptsMetadata: true,
    validate(next, _old, errors) {
      validateAmounts(next.status?.hard, 'status.hard', errors)
      validateAmounts(next.status?.used, 'status.used', errors)
    },
  },

  columns: [
    nameColumn,
    {
      name: 'Request',
      type: 'string',
      doc: 'Usage and limit of all resources except limits.*.',
      cell: (object) => formatUsage(object, (name) => !name.startsWith('limits.')),
    },
    {
      name: 'Limit',
      type: 'string',
      doc: 'Usage and limit of the limits.* resources.',
      cell: (object) => formatUsage(object, (name) => name.startsWith('limits.')),
    },
    ageColumn,
  ],
  deleteReturnsObject: true,
})

function validateAmounts(amounts: Record<string, string> | undefined, field: string, errors: FieldErrors): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    validateQuotaResourceName(name, `${field}[${name}]`, errors)
    validateResourceAmount(name, amount, `${field}[${name}]`, errors)
  }
}

/** Rejects iops and throughput while the feature gate is disabled, unless the stored object already has them. */
function rejectGatedIoResources(
  hard: Record<string, string> | undefined,
  oldHard: Record<string, string> | undefined,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  if (gates.enabled('VolumeProvisionedIO') || Object.keys(oldHard ?? {}).some(isIoQuotaResource)) return
  for (const name of Object.keys(hard ?? {}).filter(isIoQuotaResource)) {
    errors.invalid(`spec.hard[${name}]`, name, 'must be a standard resource for quota')
  }
}

/** Formats usage and limits as `persistentvolumeclaims: 3/10, requests.storage: 30Gi/100Gi`. */
function formatUsage(object: ResourceQuota, isIncluded: (name: string) => boolean): string {
  const { hard = {}, used = {} } = object.status ?? {}
  const names = Object.keys(hard).filter(isIncluded).sort()
  return names.map((name) => `${name}: ${amountOf(used, name) ?? '0'}/${hard[name]}`).join(', ')
}
