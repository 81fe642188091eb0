// Reads the bodies of responses in tests.
import type { ApiResponse } from './messages.ts'

/** Returns the whole body of a response that is not a stream. */
export function wholeBody({ body, longBody }: ApiResponse): Uint8Array {
  if (!longBody) return body ?? new Uint8Array()
  const slices: Uint8Array[] = []
  for (let slice = longBody.next(); slice; slice = longBody.next()) slices.push(slice)
  return Buffer.concat(slices)
}
