// Determines whether a number is still the same after it is parsed to a double and printed. A quantity or a counter that
// changes silently would be stored and enforced as another value.

/** Returns whether the parsed number has the value of the text. `9007199254740993` and `1e400` are not exact. */
export function isExactNumber(text: string): boolean {
  if (text.length < EXACT_LENGTH && !/[eE]/.test(text)) return true
  const value = Number(text)
  return Number.isFinite(value) && significantDigits(text) === significantDigits(String(value))
}

/** A number with fewer characters and no exponent has at most 15 digits, and every number of 15 digits is exact. */
export const EXACT_LENGTH = 16

/** Returns digits without leading or trailing zeros, and the exponent: '-12.50' and '-125e-1' are both '-125e-1'. */
function significantDigits(text: string): string {
  const [, sign = '', whole = '', decimals = '', exponent = '0'] =
    /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + decimals).replace(/^0+/, '')
  const trimmedDigits = digits.replace(/0+$/, '')
  if (trimmedDigits === '') return '0'
  return `${sign === '-' ? sign : ''}${trimmedDigits}e${Number(exponent) - decimals.length + digits.length - trimmedDigits.length}`
}
