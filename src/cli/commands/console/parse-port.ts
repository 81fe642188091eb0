// Parses the value of a port flag.
import { checkPort } from '../../../base/listen-address.ts'
import { UsageError } from '../../../base/usage-error.ts'

/** Returns undefined for an absent flag. Throws UsageError unless the text is a number from 0 to 65535. */
export function parsePort(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d+$/.test(text)) throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a port number, such as 7444`)
  checkPort(flag, text, text)
  return Number(text)
}
