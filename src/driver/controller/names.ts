// Names that callers choose for volumes and snapshots.
import { invalid, missing } from '../errors.ts'

const NAME_LENGTH_MAX = 128

/** Any text the protocol allows; it is only ever hashed and shown. */
export function checkName(name: string): void {
  if (name === '') throw missing('name')
  if ([...name].length > NAME_LENGTH_MAX)
    throw invalid(`The name has more than ${NAME_LENGTH_MAX} characters. Use a shorter one.`)
  if (UNUSABLE.test(name)) throw invalid('The name contains control characters. Use a name without them.')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what the protocol forbids
const UNUSABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/
