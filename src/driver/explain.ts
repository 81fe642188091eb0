// Failures of the machine as the protocol's: what a person can act on reaches the caller in words. What is left is our
// mistake, and stays in the log.
import { AssertionError } from 'node:assert'
import { CsiError } from '../csi/errors.ts'
import { MissingToolError, NoSpaceError, NotBlankError, ProgramFailedError } from './host/index.ts'

/** The same service, whose failures all say why. */
export function explaining<S extends object>(service: S): S {
  const explained = Object.entries(service).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await call(...args)
      } catch (error) {
        throw explain(error)
      }
    },
  ])
  return Object.fromEntries(explained)
}

export function explain(error: unknown): unknown {
  if (error instanceof CsiError || error instanceof AssertionError || !(error instanceof Error)) return error
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) return error
  if (error instanceof NoSpaceError) return new CsiError('RESOURCE_EXHAUSTED', error.message)
  if (error instanceof MissingToolError || error instanceof NotBlankError) {
    return new CsiError('FAILED_PRECONDITION', error.message)
  }
  if (error instanceof ProgramFailedError && error.program === 'umount' && /busy/.test(error.stderr)) {
    return new CsiError(
      'FAILED_PRECONDITION',
      `${error.stderr.trim()} A process still has a file open there. End it first.`,
    )
  }
  return new CsiError('INTERNAL', error.message)
}
