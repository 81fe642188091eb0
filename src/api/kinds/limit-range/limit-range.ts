// LimitRange: bounds and defaults for single objects of a namespace. Limit-range admission in the API server applies and
// enforces them. Items for claims may contain iops and throughput; a Container item that contains only those applies to
// claims as well.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { quantityIsInteger, quantitySign } from '../../quantity.ts'
import { normalizeThroughput } from '../../throughput.ts'
import { amountOf, isIoResource } from '../shared/provisioned-io.ts'
import { isThroughputName, validateContainerResourceName, validateResourceName } from '../shared/resource-names.ts'
import { validateOrder } from './limit-order.ts'
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
      for (const part of AMOUNTS) normalizeAmounts(item[part])
      if (item.type === 'Container') completeContainerItem(item)
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
    validateIoGate(object, old, errors, context)
  },

  columns: [nameColumn, createdAtColumn],
  allowsCreateOnUpdate: true,
  deleteReturnsObject: false,
})

/** Whether the item applies to claims: by its type, or as a Container item with iops and throughput only. */
export function limitsClaims(item: LimitRangeItem): boolean {
  if (item.type === 'PersistentVolumeClaim') return true
  const names = namesIn(item)
  return item.type === 'Container' && names.length > 0 && names.every(isIoResource)
}

const AMOUNTS = ['max', 'min', 'default', 'defaultRequest'] as const
const MAPS = [...AMOUNTS, 'maxLimitRequestRatio'] as const

const namesIn = (item: LimitRangeItem): string[] => MAPS.flatMap((part) => Object.keys(item[part] ?? {}))

function normalizeAmounts(amounts: Record<string, string> | undefined): void {
  if (!amounts) return
  for (const name of Object.keys(amounts).filter(isThroughputName)) amounts[name] = normalizeThroughput(amounts[name]!)
}

/** Fills in missing amounts: default from max; defaultRequest from default, else from min. */
function completeContainerItem(item: LimitRangeItem): void {
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
  const ofPod = item.type === 'Pod'
  if (ofPod && Object.keys(item.default ?? {}).length > 0) {
    errors.forbidden(`${field}.default`, "may not be specified when `type` is 'Pod'")
  }
  if (ofPod && Object.keys(item.defaultRequest ?? {}).length > 0) {
    errors.forbidden(`${field}.defaultRequest`, "may not be specified when `type` is 'Pod'")
  }
  const forContainers = (ofPod || item.type === 'Container') && !limitsClaims(item)
  const validateName = forContainers ? validateContainerResourceName : validateResourceName
  const parts = ofPod ? (['max', 'min', 'maxLimitRequestRatio'] as const) : MAPS
  for (const part of parts) {
    for (const [name, amount] of Object.entries(item[part] ?? {})) {
      validateName(name, `${field}.${part}[${name}]`, errors)
      if (quantitySign(amount) < 0) {
        errors.invalid(`${field}.${part}[${name}]`, amount, 'must be greater than or equal to 0')
      } else if (limitsClaims(item)) validateClaimAmount({ part, name, amount }, field, errors)
    }
  }
  if (item.type === 'PersistentVolumeClaim' && !boundsSomething(item)) {
    errors.required(`${field}.limits`, 'either minimum or maximum storage value is required, but neither was provided')
  }
  const names = new Set(parts.flatMap((part) => Object.keys(item[part] ?? {})))
  for (const name of [...names].sort()) {
    validateOrder({
      name,
      field,
      min: amountOf(item.min, name),
      max: amountOf(item.max, name),
      default: ofPod ? undefined : amountOf(item.default, name),
      defaultRequest: ofPod ? undefined : amountOf(item.defaultRequest, name),
      ratio: amountOf(item.maxLimitRequestRatio, name),
      errors,
    })
  }
}

/** Rejects defaults that no claim may request: the user of a claim without a request could not explain the error. */
function validateClaimAmount(
  { part, name, amount }: { part: (typeof MAPS)[number]; name: string; amount: string },
  field: string,
  errors: FieldErrors,
): void {
  if (part === 'maxLimitRequestRatio') return
  const isDefault = part === 'default' || part === 'defaultRequest'
  if (isIoResource(name) && !quantityIsInteger(amount)) {
    errors.invalid(`${field}.${part}[${name}]`, amount, 'must be an integer')
  } else if (isDefault && quantitySign(amount) === 0 && (isIoResource(name) || name === 'storage')) {
    errors.invalid(`${field}.${part}[${name}]`, amount, 'must be greater than zero')
  }
}

/** An item for claims must bound storage or contain iops or throughput. */
const boundsSomething = (item: LimitRangeItem): boolean =>
  item.min?.storage !== undefined || item.max?.storage !== undefined || namesIn(item).some(isIoResource)

/** Rejects iops and throughput while the gate is off, unless the stored object has them already. */
function validateIoGate(
  next: LimitRange,
  old: LimitRange | undefined,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  if (gates.enabled('VolumeProvisionedIO')) return
  if (old?.spec?.limits.some((item) => namesIn(item).some(isIoResource))) return
  next.spec?.limits.forEach((item, i) => {
    for (const part of MAPS) {
      for (const name of Object.keys(item[part] ?? {}).filter(isIoResource)) {
        const field = `spec.limits[${i}].${part}[${name}]`
        errors.invalid(field, name, 'must be a standard resource type or fully qualified')
      }
    }
  })
}
