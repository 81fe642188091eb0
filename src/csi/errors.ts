// What a driver's failures are called and what they mean. The meanings are tables: one per kind of call, because the
// same code lets a caller go on after one call and forbids it after another.
// A failure that carries no code at all (anything but a CsiError) tells nothing: the driver may still be at work.
import type { HasLogFields } from '../base/log.ts'

/** gRPC's codes; the place in the list is the number on the wire. */
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

/** A call that failed. The message is the driver's, or says what kept the call from it; it never holds a secret. */
export class CsiError extends Error implements HasLogFields {
  override readonly name = 'CsiError'
  readonly codeName: CsiFailureCode

  constructor(codeName: CsiFailureCode, message: string) {
    super(message)
    this.codeName = codeName
  }

  logFields(): object {
    return { code: goNameOf(this.codeName) }
  }

  get code(): number {
    return CSI_CODES.indexOf(this.codeName)
  }

  /** As Go's tools write it, and as people search for it. */
  get rpcText(): string {
    return `rpc error: code = ${goNameOf(this.codeName)} desc = ${this.message}`
  }
}

/** A number that gRPC does not define is as good as no answer. */
export function codeNameOf(code: number): CsiCode {
  return CSI_CODES[code] ?? 'UNKNOWN'
}

/** `ResourceExhausted` for `RESOURCE_EXHAUSTED`: the spelling of metrics and events. */
export function goNameOf(codeName: CsiCode): string {
  if (codeName === 'OK') return 'OK'
  if (codeName === 'CANCELLED') return 'Canceled'
  return codeName.replace(/([A-Z])([A-Z]*)_?/g, (_, first: string, rest: string) => first + rest.toLowerCase())
}

/**
 *   unfinished   something may have been made, or still be in the making: only the same request tells
 *   final        nothing was made
 *   infeasible   as final, and the same request will fail again
 *   reschedule   as final, but another node may do
 */
export type CreateFailure = 'unfinished' | 'final' | 'infeasible' | 'reschedule'

export function classifyCreateFailure(
  error: unknown,
  { hasSelectedNode, hasTopology }: { readonly hasSelectedNode: boolean; readonly hasTopology: boolean },
): CreateFailure {
  if (!(error instanceof CsiError)) return 'unfinished'
  const meaning = AFTER_CREATE[error.codeName] ?? 'final'
  if (meaning !== 'reschedule') return meaning
  return hasSelectedNode && hasTopology ? 'reschedule' : 'final' // without a choice of node there is none to give back
}

const AFTER_CREATE: Partial<Record<CsiFailureCode, CreateFailure>> = {
  CANCELLED: 'unfinished',
  DEADLINE_EXCEEDED: 'unfinished',
  UNAVAILABLE: 'unfinished',
  ABORTED: 'unfinished', // an earlier call for this volume is still running
  RESOURCE_EXHAUSTED: 'reschedule',
  INVALID_ARGUMENT: 'infeasible',
}

/** Whether the driver may still be doing, or have done, what was asked. Not for CreateVolume, which has its own table. */
export function isUncertain(error: unknown): boolean {
  return !(error instanceof CsiError) || isUncertainCode(error.codeName)
}

export const isUncertainCode = (code: CsiCode): boolean => UNCERTAIN.has(code)

const UNCERTAIN: ReadonlySet<CsiCode> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
])

/** The volume cannot have this size: wait for another request. */
export function isInfeasibleExpand(error: unknown): boolean {
  return error instanceof CsiError && INFEASIBLE_EXPAND.has(error.codeName)
}

const INFEASIBLE_EXPAND: ReadonlySet<CsiCode> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'])

/** The volume cannot have these attributes, and still has the ones it had. */
export function isInfeasibleModify(error: unknown): boolean {
  return error instanceof CsiError && error.codeName === 'INVALID_ARGUMENT'
}

/** Whether the driver does not offer the call; asking again is pointless. */
export function isUnimplemented(error: unknown): boolean {
  return error instanceof CsiError && error.codeName === 'UNIMPLEMENTED'
}
