// Validates the names of volumes and snapshots.
import { invalid, missingField } from '../errors.ts'

const NAME_LENGTH_MAX = 128

/** Throws if the CSI specification does not allow the name. */
export function checkName(name: string): void {
  if (name === '') throw missingField('name')
  if ([...name].length > NAME_LENGTH_MAX)
    throw invalid(`The name has more than ${NAME_LENGTH_MAX} characters. Use a shorter name.`)
  if (CONTROL_CHARACTERS.test(name)) throw invalid('The name contains control characters. Use a name without them.')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the CSI specification forbids these
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/
