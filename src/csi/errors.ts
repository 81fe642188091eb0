// CSI errors and their classification. There is one table per kind of call, because the same gRPC code can be final for one
// call and uncertain for another. An error that is not a CsiError is uncertain: the driver may still be working.
import type { HasLogFields } from '../base/log.ts'
import type { HasOperationDetails, OperationDetails } from '../base/operation-details.ts'

/** gRPC status codes. The index is the number of the code. */
export const CSI_CODES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const
export type CsiCode = (typeof CSI_CODES)[number]
export type CsiFailureCode = Exclude<CsiCode, 'OK'>

/** A failed call's error. */
export class CsiError extends Error implements HasLogFields, HasOperationDetails {
  override readonly name = 'CsiError'
  readonly codeName: CsiFailureCode
  /** The call that failed. instrument.ts sets it. */
  call: { readonly driver: string; readonly method: string } | undefined

  constructor(codeName: CsiFailureCode, message: string) {
    super(message)
    this.codeName = codeName
  }

  logFields(): object {
    return { code: goNameOf(this.codeName) }
  }

  operationDetails(): OperationDetails {
    const code = goNameOf(this.codeName)
    return { reason: code, ...(this.call ? { driverAnswer: { ...this.call, code } } : {}) }
  }

  get code(): number {
    return CSI_CODES.indexOf(this.codeName)
  }

  /** The error in the format of gRPC for Go, which users know from other CSI drivers. */
  get rpcText(): string {
    return `rpc error: code = ${goNameOf(this.codeName)} desc = ${this.message}`
  }
}

/** UNAVAILABLE because there is no connection, it broke, or no valid response came: the driver has not returned this error. */
export class ConnectionError extends CsiError {
  constructor(message: string) {
    super('UNAVAILABLE', message)
  }
}

/** Returns UNKNOWN for numbers that gRPC does not define, as the gRPC specification requires. */
export function codeNameOf(code: number): CsiCode {
  return CSI_CODES[code] ?? 'UNKNOWN'
}

/** Returns the name of the code in Go, used in metrics and events: `ResourceExhausted` for `RESOURCE_EXHAUSTED`. */
export function goNameOf(codeName: CsiCode): string {
  if (codeName === 'OK') return 'OK'
  if (codeName === 'CANCELLED') return 'Canceled'
  return codeName.replace(
    /([A-Z])([A-Z]*)_?/g,
    (_, first: string, remaining: string) => first + remaining.toLowerCase(),
  )
}

/**
 * The outcome of a failed CreateVolume call:
 *   unfinished   the volume may exist, or the driver may still be creating it: repeat the same request to find out
 *   final        no volume was created
 *   infeasible   like final, and the same request will fail again
 *   reschedule   like final, but another node may have capacity
 */
export type CreateFailure = 'unfinished' | 'final' | 'infeasible' | 'reschedule'

export function classifyCreateFailure(
  error: unknown,
  { hasSelectedNode, hasTopology }: { readonly hasSelectedNode: boolean; readonly hasTopology: boolean },
): CreateFailure {
  if (!(error instanceof CsiError)) return 'unfinished'
  const classification = CREATE_FAILURES[error.codeName] ?? 'final'
  if (classification !== 'reschedule') return classification
  return hasSelectedNode && hasTopology ? 'reschedule' : 'final' // without a selected node there is nothing to reschedule
}

const CREATE_FAILURES: Partial<Record<CsiFailureCode, CreateFailure>> = {
  CANCELLED: 'unfinished',
  DEADLINE_EXCEEDED: 'unfinished',
  UNAVAILABLE: 'unfinished',
  ABORTED: 'unfinished', // an earlier call for this volume is still running
  RESOURCE_EXHAUSTED: 'reschedule',
  INVALID_ARGUMENT: 'infeasible',
}

/** Returns whether the driver may have completed the call or may still be working on it. Not for CreateVolume. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof CsiError) || UNCERTAIN_CODES.has(error.codeName)
}

const UNCERTAIN_CODES: ReadonlySet<CsiCode> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
])

/** Returns whether the volume cannot have this size, so that the same request fails again. */
export function isInfeasibleExpand(error: unknown): boolean {
  return error instanceof CsiError && INFEASIBLE_EXPAND_CODES.has(error.codeName)
}

const INFEASIBLE_EXPAND_CODES: ReadonlySet<CsiCode> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'])

/** Returns whether the volume cannot have these attributes. Its attributes are unchanged then. */
export function isInfeasibleModify(error: unknown): boolean {
  return error instanceof CsiError && error.codeName === 'INVALID_ARGUMENT'
}

/** Returns whether the driver does not implement the call: do not retry. */
export function isUnimplemented(error: unknown): boolean {
  return error instanceof CsiError && error.codeName === 'UNIMPLEMENTED'
}
