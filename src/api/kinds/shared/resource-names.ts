// Validates the names and amounts of resources in pods, quotas and limit ranges. The messages are those of Kubernetes.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import { quantityIsInteger, quantitySign } from '../../quantity.ts'
import { IO_RESOURCES, RESOURCE_PARTS } from './provisioned-io.ts'

/** The names of iops and throughput in a quota. */
export const IO_QUOTA_RESOURCES = RESOURCE_PARTS.flatMap((part) => IO_RESOURCES.map((name) => `${part}.${name}`))

export const isIoQuotaResource = (name: string): boolean => IO_QUOTA_RESOURCES.includes(name)

/** Names of throughput amounts, which are stored in bytes per second. */
export const isThroughputName = (name: string): boolean =>
  name === 'throughput' || name === 'requests.throughput' || name === 'limits.throughput'

/** Accepts standard names and names with a domain prefix. */
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

/** Amounts must not be negative; amounts of countable resources must be integers. */
export function validateResourceAmount(name: string, amount: string, field: string, errors: FieldErrors): void {
  if (quantitySign(amount) < 0) errors.invalid(field, amount, 'must be greater than or equal to 0')
  if (isCounted(name) && !quantityIsInteger(amount)) errors.invalid(field, amount, 'must be an integer')
}

export const isStandardQuotaResource = (name: string): boolean =>
  STANDARD_QUOTA_RESOURCES.has(name) || isQuotaHugePages(name)

/** Resources whose limits may exceed the requests. */
export const isOvercommitAllowed = (name: string): boolean => isNativeResource(name) && !isHugePages(name)

export const isHugePages = (name: string): boolean => name.startsWith('hugepages-')

const isQuotaHugePages = (name: string): boolean => isHugePages(name) || name.startsWith('requests.hugepages-')
const isStandardResource = (name: string): boolean => STANDARD_RESOURCES.has(name) || isQuotaHugePages(name)
const isStandardContainerResource = (name: string): boolean => CONTAINER_RESOURCES.has(name) || isHugePages(name)
const isNativeResource = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')
const isExtendedResource = (name: string): boolean =>
  !isNativeResource(name) && !name.startsWith('requests.') && qualifiedNameProblems(`requests.${name}`).length === 0
const isCounted = (name: string): boolean => COUNTED_RESOURCES.has(name) || isExtendedResource(name)

const CONTAINER_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage'])
const COUNTED_OBJECTS = [
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
const COUNTED_RESOURCES = new Set([...COUNTED_OBJECTS, ...IO_RESOURCES, ...IO_QUOTA_RESOURCES])
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
  ...COUNTED_OBJECTS,
])
const STANDARD_RESOURCES = new Set([...STANDARD_QUOTA_RESOURCES, 'storage', ...IO_RESOURCES])
