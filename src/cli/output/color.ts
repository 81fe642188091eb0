// Colors of text on a terminal: the flag --no-color, the variable NO_COLOR, and the escape sequences.
import { Option } from 'commander'

export const noColorOption = () =>
  new Option('--no-color', 'disable colors; the default if $NO_COLOR is set or the output is not a terminal')

/** Returns whether to color standard output. `isEnabled` is false with --no-color. */
export const canShowColors = (
  isEnabled: boolean,
  { env, stdout }: Pick<NodeJS.Process, 'env'> & { readonly stdout: { readonly isTTY?: boolean } } = process,
): boolean => isEnabled && !env.NO_COLOR && stdout.isTTY === true

/** Codes of ECMA-48. */
const CODES = { red: 31, green: 32, yellow: 33, cyan: 36 } as const
export type Color = keyof typeof CODES

/** Returns the text in a color, or unchanged if colors are not shown. */
export const paint = (text: string, color: Color, hasColors: boolean): string =>
  hasColors ? `\u001b[${CODES[color]}m${text}\u001b[0m` : text
