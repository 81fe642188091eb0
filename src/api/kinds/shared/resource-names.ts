// Validates and classifies the names of resources in pods, quotas and limit ranges, and validates their amounts.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import { isIntegerQuantity, quantitySign } from '../../quantity.ts'
import { IO_RESOURCES, REQUESTS_AND_LIMITS } from './provisioned-io.ts'

/** The names of iops and throughput in a quota. */
export const IO_QUOTA_RESOURCES = REQUESTS_AND_LIMITS.flatMap((part) => IO_RESOURCES.map((name) => `${part}.${name}`))

export const isIoQuotaResource = (name: string): boolean => IO_QUOTA_RESOURCES.includes(name)

/** Returns whether the resource is a throughput, which is stored in bytes/s. */
export const isThroughputName = (name: string): boolean =>
  name === 'throughput' || name === 'requests.throughput' || name === 'limits.throughput'

/** Validates that the name is a standard name or has a domain prefix. */
export function validateResourceName(name: string, field: string, errors: FieldErrors): void {
  const problems = qualifiedNameProblems(name)
  errors.invalidAll(field, name, problems)
  if (problems.length === 0 && !name.includes('/') && !isStandardResource(name)) {
    errors.invalid(field, name, 'must be a standard resource type or fully qualified')
  }
}

export function validateQuotaResourceName(name: string, field: string, errors: FieldErrors): void {
  validateResourceName(name, field, errors)
  if (!name.includes('/') && !isStandardQuotaResource(name)) {
    errors.invalid(field, name, 'must be a standard resource for quota')
  }
}

export function validateContainerResourceName(name: string, field: string, errors: FieldErrors): void {
  const problems = qualifiedNameProblems(name)
  if (problems.length > 0) errors.invalidAll(field, name, problems)
  else if (!name.includes('/')) {
    if (!isStandardContainerResource(name)) errors.invalid(field, name, 'must be a standard resource for containers')
  } else if (!isNativeResource(name) && !isExtendedResource(name)) {
    errors.invalid(field, name, "doesn't follow extended resource name standard")
  }
}

/** Validates that an amount is not negative and, for resources that are counted, an integer. */
export function validateResourceAmount(name: string, amount: string, field: string, errors: FieldErrors): void {
  if (quantitySign(amount) < 0) errors.invalid(field, amount, 'must be greater than or equal to 0')
  if (requiresInteger(name) && !isIntegerQuantity(amount)) errors.invalid(field, amount, 'must be an integer')
}

export const isStandardQuotaResource = (name: string): boolean =>
  STANDARD_QUOTA_RESOURCES.has(name) || isQuotaHugePages(name)

/** Returns whether the limit of the resource may exceed the request. */
export const isOvercommitAllowed = (name: string): boolean => isNativeResource(name) && !isHugePages(name)

export const isHugePages = (name: string): boolean => name.startsWith('hugepages-')

const isQuotaHugePages = (name: string): boolean => isHugePages(name) || name.startsWith('requests.hugepages-')
const isStandardResource = (name: string): boolean => STANDARD_RESOURCES.has(name) || isQuotaHugePages(name)
const isStandardContainerResource = (name: string): boolean => CONTAINER_RESOURCES.has(name) || isHugePages(name)
const isNativeResource = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')
const isExtendedResource = (name: string): boolean =>
  !isNativeResource(name) && !name.startsWith('requests.') && qualifiedNameProblems(`requests.${name}`).length === 0
const requiresInteger = (name: string): boolean => INTEGER_RESOURCES.has(name) || isExtendedResource(name)

const CONTAINER_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage'])
const OBJECT_COUNT_RESOURCES = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
]
const INTEGER_RESOURCES = new Set([...OBJECT_COUNT_RESOURCES, ...IO_RESOURCES, ...IO_QUOTA_RESOURCES])
const STANDARD_QUOTA_RESOURCES = new Set([
  'cpu',
  'memory',
  'ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.storage',
  'requests.ephemeral-storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  ...IO_QUOTA_RESOURCES,
  ...OBJECT_COUNT_RESOURCES,
])
const STANDARD_RESOURCES = new Set([...STANDARD_QUOTA_RESOURCES, 'storage', ...IO_RESOURCES])
