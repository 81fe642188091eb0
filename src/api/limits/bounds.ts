// Compares the amounts of one resource with a bound of a LimitRange item. Each function returns the message of a violation,
// or undefined. The messages are those of Kubernetes, including the double spaces.
import { compareQuantities, formatQuantity, parseQuantity, type Quantity, quantitySign } from '../quantity.ts'

export interface BoundedResource {
  /** Type of the object in messages: Container, Pod, PersistentVolumeClaim. */
  readonly type: string
  /** Name of the resource. */
  readonly name: string
  readonly request: Quantity | undefined
  readonly limit: Quantity | undefined
}

export function describeMinViolation({ type, name, request, limit }: BoundedResource, min: string): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${min}`
  if (!request) return `${rule}.  No request is specified`
  if (compareQuantities(request, min) < 0) return `${rule}, but request is ${formatQuantity(request)}`
  if (limit && compareQuantities(limit, min) < 0) return `${rule}, but limit is ${formatQuantity(limit)}`
  return undefined
}

/** Compares the limit and the request of a container or pod with the maximum. The limit must be set. */
export function describeMaxViolation({ type, name, request, limit }: BoundedResource, max: string): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${max}`
  if (!limit) return `${rule}.  No limit is specified`
  if (compareQuantities(limit, max) > 0) return `${rule}, but limit is ${formatQuantity(limit)}`
  if (request && compareQuantities(request, max) > 0) return `${rule}, but request is ${formatQuantity(request)}`
  return undefined
}

/** Compares the request of a claim with the maximum. The limit of the claim is not compared. */
export function describeRequestMaxViolation({ type, name, request }: BoundedResource, max: string): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${max}`
  if (!request) return `${rule}.  No request is specified`
  if (compareQuantities(request, max) > 0) return `${rule}, but request is ${formatQuantity(request)}`
  return undefined
}

export function describeRatioViolation(
  { type, name, request, limit }: BoundedResource,
  ratio: string,
): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${ratio}`
  if (!request || quantitySign(request) === 0) return `${rule}, but no request is specified or request is 0`
  if (!limit || quantitySign(limit) === 0) return `${rule}, but no limit is specified or limit is 0`
  if (limit.nanos * NANOS_PER_UNIT <= request.nanos * parseQuantity(ratio).nanos) return undefined
  return `${rule}, but provided ratio is ${(Number(limit.nanos) / Number(request.nanos)).toFixed(6)}`
}

const NANOS_PER_UNIT = 1_000_000_000n
