// Captures a driver's responses and errors as values, and asserts the codes that a check expects.
import { type CsiCode, CsiError, type CsiFailureCode } from '../../csi/index.ts'
import { violate } from '../check.ts'

export type CallOutcome<T> =
  | { readonly code: 'OK'; readonly response: T; readonly message: '' }
  | { readonly code: CsiFailureCode; readonly response: undefined; readonly message: string }

export async function attempt<T>(call: Promise<T>): Promise<CallOutcome<T>> {
  try {
    return { code: 'OK', response: await call, message: '' }
  } catch (error) {
    if (error instanceof CsiError) return { code: error.codeName, response: undefined, message: error.message }
    throw error
  }
}

/** Throws Violation unless the call succeeded. `situation` describes the call, such as `DeleteVolume of an unknown id`. */
export function expectOk<T>(outcome: CallOutcome<T>, situation: string): T {
  if (outcome.code !== 'OK') violate(`${situation}: expected OK, got ${describeOutcome(outcome)}`)
  return outcome.response
}

/** Throws Violation unless the outcome has one of the codes. */
export function expectCode(
  outcome: CallOutcome<unknown>,
  codes: CsiCode | readonly CsiCode[],
  situation: string,
): void {
  const expectedCodes = typeof codes === 'string' ? [codes] : codes
  if (expectedCodes.includes(outcome.code)) return
  violate(`${situation}: expected ${expectedCodes.join(' or ')}, got ${describeOutcome(outcome)}`)
}

export const describeOutcome = (outcome: CallOutcome<unknown>): string =>
  outcome.code === 'OK' ? 'OK' : `${outcome.code} (${outcome.message})`
