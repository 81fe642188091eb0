// One amount against one bound of a LimitRange item: the sentence that refuses it, or nothing. The words are those that
// clients know, down to the two spaces.
import { compareQuantities, formatQuantity, parseQuantity, type Quantity, quantitySign } from '../quantity.ts'

export interface Bounded {
  /** What is bounded, as messages call it: Container, Pod, PersistentVolumeClaim. */
  readonly type: string
  /** The resource. */
  readonly name: string
  readonly request: Quantity | undefined
  readonly limit: Quantity | undefined
}

export function tooLittle({ type, name, request, limit }: Bounded, min: string): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${min}`
  if (!request) return `${rule}.  No request is specified`
  if (compareQuantities(request, min) < 0) return `${rule}, but request is ${formatQuantity(request)}`
  if (limit && compareQuantities(limit, min) < 0) return `${rule}, but limit is ${formatQuantity(limit)}`
  return undefined
}

/** For what takes limits: the limit is what counts, and must be there. */
export function tooMuch({ type, name, request, limit }: Bounded, max: string): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${max}`
  if (!limit) return `${rule}.  No limit is specified`
  if (compareQuantities(limit, max) > 0) return `${rule}, but limit is ${formatQuantity(limit)}`
  if (request && compareQuantities(request, max) > 0) return `${rule}, but request is ${formatQuantity(request)}`
  return undefined
}

/** For what only requests. */
export function tooMuchRequested({ type, name, request }: Bounded, max: string): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${max}`
  if (!request) return `${rule}.  No request is specified`
  if (compareQuantities(request, max) > 0) return `${rule}, but request is ${formatQuantity(request)}`
  return undefined
}

export function tooFarApart({ type, name, request, limit }: Bounded, ratio: string): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${ratio}`
  if (!request || quantitySign(request) === 0) return `${rule}, but no request is specified or request is 0`
  if (!limit || quantitySign(limit) === 0) return `${rule}, but no limit is specified or limit is 0`
  if (limit.nanos * NANOS <= request.nanos * parseQuantity(ratio).nanos) return undefined
  return `${rule}, but provided ratio is ${(Number(limit.nanos) / Number(request.nanos)).toFixed(6)}`
}

const NANOS = 1_000_000_000n
