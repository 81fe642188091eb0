// The error for input that the user can correct, such as a flag, a setting or a file. The program prints the message without
// a stack trace and exits with code 2.
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Runs a parser of user input and converts its errors to UsageErrors, prefixed with the flag if one is given. */
export function asUsageError<T>(parse: () => T, flag?: string): T {
  try {
    return parse()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new UsageError(flag ? `${flag}: ${message}` : message)
  }
}
