// Captures a driver's responses and errors as values, and asserts the codes that a check expects.
import { type CsiCode, CsiError, type CsiFailureCode } from '../../csi/index.ts'
import { violate } from '../check.ts'

export type Answer<T> =
  | { readonly code: 'OK'; readonly response: T; readonly message: '' }
  | { readonly code: CsiFailureCode; readonly response: undefined; readonly message: string }

export async function attempt<T>(call: Promise<T>): Promise<Answer<T>> {
  try {
    return { code: 'OK', response: await call, message: '' }
  } catch (error) {
    if (error instanceof CsiError) return { code: error.codeName, response: undefined, message: error.message }
    throw error
  }
}

/** Throws Violation unless the call succeeded. `situation` describes the call, such as `DeleteVolume of an unknown id`. */
export function expectOk<T>(answer: Answer<T>, situation: string): T {
  if (answer.code !== 'OK') violate(`${situation}: expected OK, got ${describeAnswer(answer)}`)
  return answer.response
}

/** Throws Violation unless the answer has one of the codes. */
export function expectCode(answer: Answer<unknown>, codes: CsiCode | readonly CsiCode[], situation: string): void {
  const expectedCodes = typeof codes === 'string' ? [codes] : codes
  if (expectedCodes.includes(answer.code)) return
  violate(`${situation}: expected ${expectedCodes.join(' or ')}, got ${describeAnswer(answer)}`)
}

export const describeAnswer = (answer: Answer<unknown>): string =>
  answer.code === 'OK' ? 'OK' : `${answer.code} (${answer.message})`
