// Declares LimitRange: bounds and defaults for single objects of a namespace, which limit-range admission applies. Items for
// claims may contain iops and throughput. A Container item that contains only these applies to claims instead of containers.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { isIntegerQuantity, quantitySign } from '../../quantity.ts'
import { normalizeThroughput } from '../../throughput.ts'
import { amountOf, isIoResource } from '../shared/provisioned-io.ts'
import { isThroughputName, validateContainerResourceName, validateResourceName } from '../shared/resource-names.ts'
import { validateLimitOrder } from './limit-order.ts'
import { type LimitRange, type LimitRangeItem, limitRange } from './limit-range-schema.ts'

export const limitRangeKind = defineKind<LimitRange>({
  group: '',
  versions: ['v1'],
  kind: 'LimitRange',
  plural: 'limitranges',
  singular: 'limitrange',
  shortNames: ['limits'],
  namespaced: true,
  type: limitRange,

  nameErrors: dns1123SubdomainProblems,
  defaults(object) {
    for (const item of object.spec?.limits ?? []) {
      for (const part of AMOUNT_FIELDS) normalizeAmounts(item[part])
      if (item.type === 'Container') setContainerDefaults(item)
    }
  },
  validate(object, errors, context, old) {
    const seenTypes = new Set<string>()
    object.spec?.limits.forEach((item, i) => {
      const field = `spec.limits[${i}]`
      validateType(item.type, `${field}.type`, errors)
      if (seenTypes.has(item.type)) errors.duplicate(`${field}.type`, item.type)
      seenTypes.add(item.type)
      validateItem(item, field, errors)
    })
    rejectGatedIoResources(object, old, errors, context)
  },

  columns: [nameColumn, createdAtColumn],
  allowsCreateOnUpdate: true,
  deleteReturnsObject: false,
})

/** Returns whether the item applies to claims: by its type, or as a Container item with only iops and throughput. */
export function limitsClaims(item: LimitRangeItem): boolean {
  if (item.type === 'PersistentVolumeClaim') return true
  const names = resourceNamesOf(item)
  return item.type === 'Container' && names.length > 0 && names.every(isIoResource)
}

const AMOUNT_FIELDS = ['max', 'min', 'default', 'defaultRequest'] as const
const ITEM_FIELDS = [...AMOUNT_FIELDS, 'maxLimitRequestRatio'] as const

const resourceNamesOf = (item: LimitRangeItem): string[] => ITEM_FIELDS.flatMap((part) => Object.keys(item[part] ?? {}))

function normalizeAmounts(amounts: Record<string, string> | undefined): void {
  if (!amounts) return
  for (const name of Object.keys(amounts).filter(isThroughputName)) amounts[name] = normalizeThroughput(amounts[name]!)
}

/** Sets missing amounts: default to max, and defaultRequest to default or else to min. */
function setContainerDefaults(item: LimitRangeItem): void {
  const defaults = { ...item.max, ...item.default }
  const defaultRequests = { ...item.min, ...defaults, ...item.defaultRequest }
  if (Object.keys(defaults).length > 0) item.default = defaults
  if (Object.keys(defaultRequests).length > 0) item.defaultRequest = defaultRequests
}

function validateType(type: string, field: string, errors: FieldErrors): void {
  const problems = qualifiedNameProblems(type)
  errors.invalidAll(field, type, problems)
  if (problems.length === 0 && !type.includes('/') && !STANDARD_TYPES.includes(type)) {
    errors.invalid(field, type, 'must be a standard limit type or fully qualified')
  }
}

const STANDARD_TYPES = ['Pod', 'Container', 'PersistentVolumeClaim']

function validateItem(item: LimitRangeItem, field: string, errors: FieldErrors): void {
  const isPodItem = item.type === 'Pod'
  if (isPodItem && Object.keys(item.default ?? {}).length > 0) {
    errors.forbidden(`${field}.default`, "may not be specified when `type` is 'Pod'")
  }
  if (isPodItem && Object.keys(item.defaultRequest ?? {}).length > 0) {
    errors.forbidden(`${field}.defaultRequest`, "may not be specified when `type` is 'Pod'")
  }
  const isForContainers = (isPodItem || item.type === 'Container') && !limitsClaims(item)
  const validateName = isForContainers ? validateContainerResourceName : validateResourceName
  const parts = isPodItem ? (['max', 'min', 'maxLimitRequestRatio'] as const) : ITEM_FIELDS
  for (const part of parts) {
    for (const [name, amount] of Object.entries(item[part] ?? {})) {
      validateName(name, `${field}.${part}[${name}]`, errors)
      if (quantitySign(amount) < 0) {
        errors.invalid(`${field}.${part}[${name}]`, amount, 'must be greater than or equal to 0')
      } else if (limitsClaims(item)) validateClaimAmount({ part, name, amount }, field, errors)
    }
  }
  if (item.type === 'PersistentVolumeClaim' && !hasClaimBound(item)) {
    errors.required(`${field}.limits`, 'either minimum or maximum storage value is required, but neither was provided')
  }
  const names = new Set(parts.flatMap((part) => Object.keys(item[part] ?? {})))
  for (const name of [...names].sort()) {
    validateLimitOrder({
      name,
      field,
      min: amountOf(item.min, name),
      max: amountOf(item.max, name),
      default: isPodItem ? undefined : amountOf(item.default, name),
      defaultRequest: isPodItem ? undefined : amountOf(item.defaultRequest, name),
      ratio: amountOf(item.maxLimitRequestRatio, name),
      errors,
    })
  }
}

/** Rejects fractions of iops and throughput, and defaults of zero, which would make claims without a request invalid. */
function validateClaimAmount(
  { part, name, amount }: { part: (typeof ITEM_FIELDS)[number]; name: string; amount: string },
  field: string,
  errors: FieldErrors,
): void {
  if (part === 'maxLimitRequestRatio') return
  const isDefault = part === 'default' || part === 'defaultRequest'
  if (isIoResource(name) && !isIntegerQuantity(amount)) {
    errors.invalid(`${field}.${part}[${name}]`, amount, 'must be an integer')
  } else if (isDefault && quantitySign(amount) === 0 && (isIoResource(name) || name === 'storage')) {
    errors.invalid(`${field}.${part}[${name}]`, amount, 'must be greater than zero')
  }
}

/** Returns whether an item for claims bounds storage or contains iops or throughput. */
const hasClaimBound = (item: LimitRangeItem): boolean =>
  item.min?.storage !== undefined || item.max?.storage !== undefined || resourceNamesOf(item).some(isIoResource)

/** Rejects iops and throughput while the feature gate is disabled, unless the stored object already has them. */
function rejectGatedIoResources(
  next: LimitRange,
  old: LimitRange | undefined,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  if (gates.enabled('VolumeProvisionedIO')) return
  if (old?.spec?.limits.some((item) => resourceNamesOf(item).some(isIoResource))) return
  next.spec?.limits.forEach((item, i) => {
    for (const part of ITEM_FIELDS) {
      for (const name of Object.keys(item[part] ?? {}).filter(isIoResource)) {
        const field = `spec.limits[${i}].${part}[${name}]`
        errors.invalid(field, name, 'must be a standard resource type or fully qualified')
      }
    }
  })
}
