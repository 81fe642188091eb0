// Parses, formats, compares and adds Kubernetes quantities: "10Gi", "1.5", "500m", "1e3". Arithmetic is exact, because an
// amount is an integer number of billionths. The canonical text is that of Kubernetes, so that clients that compare texts
// find no differences.

export interface Quantity {
  /** The amount in billionths. Parsing rounds more precise input away from zero. */
  readonly nanos: bigint
  /** The family of suffixes of the input, also used for the output. */
  readonly format: QuantityFormat
  /** Set if the input is already canonical, for example "1.125" and "1E6". */
  readonly text?: string
}

type QuantityFormat = 'decimal' | 'binary' | 'exponent'

/** A value from an object, or the result of an earlier computation. */
export type QuantityLike = string | number | Quantity

class QuantityError extends Error {
  override readonly name = 'QuantityError'
}

/** Parses a quantity, ignoring surrounding spaces, but no other white space. Throws a QuantityError if it is invalid. */
export function parseQuantity(value: string | number): Quantity {
  const quantity = tryParseQuantity(value)
  if (typeof quantity === 'string') throw new QuantityError(quantity)
  return quantity
}

export function isQuantity(value: unknown): value is string | number {
  return (typeof value === 'string' || typeof value === 'number') && typeof tryParseQuantity(value) !== 'string'
}

/** Returns the text that Kubernetes returns for the value: `canonicalQuantity('0.5Gi')` is `'512Mi'`. */
export const canonicalQuantity = (value: QuantityLike): string => formatQuantity(quantityOf(value))

export function formatQuantity({ nanos, format, text }: Quantity): string {
  if (text !== undefined) return text
  if (nanos === 0n) return '0'
  if (format === 'binary' && isWhole(nanos) && absolute(nanos) >= 1024n * NANOS_PER_UNIT)
    return formatBinary(nanos / NANOS_PER_UNIT)
  return formatDecimal(nanos, format)
}

/** Returns a negative number, zero or a positive number, as for Array.sort. */
export function compareQuantities(a: QuantityLike, b: QuantityLike): number {
  const nanosA = quantityOf(a).nanos
  const nanosB = quantityOf(b).nanos
  return nanosA < nanosB ? -1 : nanosA > nanosB ? 1 : 0
}

/** Returns the sum in the format of `a`, or of `b` if `a` is zero. */
export function addQuantities(a: QuantityLike, b: QuantityLike): Quantity {
  const quantityA = quantityOf(a)
  const quantityB = quantityOf(b)
  return {
    nanos: quantityA.nanos + quantityB.nanos,
    format: quantityA.nanos === 0n ? quantityB.format : quantityA.format,
  }
}

/** Returns the difference in the format of `a`, or of `b` if `a` is zero. */
export function subtractQuantities(a: QuantityLike, b: QuantityLike): Quantity {
  const quantityA = quantityOf(a)
  const quantityB = quantityOf(b)
  return {
    nanos: quantityA.nanos - quantityB.nanos,
    format: quantityA.nanos === 0n ? quantityB.format : quantityA.format,
  }
}

export function quantitySign(value: QuantityLike): -1 | 0 | 1 {
  const { nanos } = quantityOf(value)
  return nanos < 0n ? -1 : nanos > 0n ? 1 : 0
}

export const isIntegerQuantity = (value: QuantityLike): boolean => isWhole(quantityOf(value).nanos)

/** Returns the amount as an integer, rounded away from zero so that a request is never reduced. */
export function quantityToBytes(value: QuantityLike): bigint {
  return divideAwayFromZero(quantityOf(value).nanos, NANOS_PER_UNIT)
}

/** Returns a size in bytes as a quantity in binary format. */
export const quantityFromBytes = (bytes: bigint | number): Quantity => ({
  nanos: BigInt(bytes) * NANOS_PER_UNIT,
  format: 'binary',
})

const quantityOf = (value: QuantityLike): Quantity => (typeof value === 'object' ? value : parseQuantity(value))

// Parsing

const NANO_DIGITS = 9
const NANOS_PER_UNIT = 10n ** BigInt(NANO_DIGITS)
const BINARY_NANOS_MAX = (2n ** 63n - 1n) * NANOS_PER_UNIT // larger binary amounts are capped, as in Kubernetes; decimal ones are not
const QUANTITY_EXPONENT_MAX = 1_000 // larger exponents are rejected: they would need thousands of digits
const QUANTITY_LENGTH_MAX = 256 // longer texts are rejected
const QUANTITY_CACHE_ENTRIES_MAX = 4_096 // a full cache is cleared

const SYNTAX = /^([+-]?)([0-9]*)(\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)$/
const SYNTAX_MESSAGE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const NUMBER_MESSAGE = 'unable to parse numeric part of quantity'
const SUFFIX_MESSAGE = "unable to parse quantity's suffix"

interface Suffix {
  format: QuantityFormat
  base: 2 | 10
  power: number
}

const SUFFIXES = new Map<string, Suffix>([
  ...['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'].map((letter, i): [string, Suffix] => [
    letter,
    { format: 'decimal', base: 10, power: 3 * i - NANO_DIGITS },
  ]),
  ...['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((letters, i): [string, Suffix] => [
    letters,
    { format: 'binary', base: 2, power: 10 * (i + 1) },
  ]),
])

const cache = new Map<string, Quantity>()

/** Returns the quantity, or the error message if the value is not a quantity. */
function tryParseQuantity(value: string | number): Quantity | string {
  const text = typeof value === 'number' ? String(value).replace('e+', 'e') : value
  const cachedQuantity = cache.get(text)
  if (cachedQuantity) return cachedQuantity
  const quantity = parseText(text.replace(/^ +| +$/g, ''))
  if (typeof quantity === 'string' || text.length > QUANTITY_LENGTH_MAX) return quantity
  if (cache.size >= QUANTITY_CACHE_ENTRIES_MAX) cache.clear()
  cache.set(text, quantity)
  return quantity
}

function parseText(text: string): Quantity | string {
  if (text.length > QUANTITY_LENGTH_MAX) return `quantities must be no more than ${QUANTITY_LENGTH_MAX} characters`
  const match = SYNTAX.exec(text)
  if (!match) return SYNTAX_MESSAGE
  const [, sign, integerDigits = '', point, suffixText = ''] = match
  const decimals = point?.slice(1) ?? ''
  if (integerDigits + decimals === '') return point === undefined ? SYNTAX_MESSAGE : NUMBER_MESSAGE
  const suffix = SUFFIXES.get(suffixText) ?? exponentSuffix(suffixText)
  if (!suffix) return SUFFIX_MESSAGE

  const integerPart = integerDigits.replace(/^0+(?=.)/, '')
  let nanos = toNanos({ digits: BigInt(integerPart + decimals), decimalCount: decimals.length, suffix })
  let format = suffix.format
  if (format === 'binary' && nanos > BINARY_NANOS_MAX) nanos = BINARY_NANOS_MAX
  if (format === 'binary' && nanos > 0n && nanos < NANOS_PER_UNIT) format = 'decimal'
  if (sign === '-') nanos = -nanos
  return isCanonicalText({ integerPart, decimals, suffix }) ? { nanos, format, text } : { nanos, format }
}

function exponentSuffix(text: string): Suffix | undefined {
  if (!/^[eE][-+]?[0-9]+$/.test(text)) return undefined
  const power = Number(text.slice(1))
  return power > QUANTITY_EXPONENT_MAX ? undefined : { format: 'exponent', base: 10, power }
}

function toNanos({ digits, decimalCount, suffix }: { digits: bigint; decimalCount: number; suffix: Suffix }): bigint {
  if (digits === 0n) return 0n
  const scaledDigits = suffix.base === 2 ? digits << BigInt(suffix.power) : digits
  const power = NANO_DIGITS - decimalCount + (suffix.base === 10 ? suffix.power : 0)
  if (power >= 0) return scaledDigits * 10n ** BigInt(power)
  if (-power > 2 * QUANTITY_LENGTH_MAX) return 1n // less than a billionth for any digits; rounds up
  return divideAwayFromZero(scaledDigits, 10n ** BigInt(-power))
}

// Returns whether Kubernetes keeps the text. It decides by the digits before any arithmetic, so some texts differ from the
// formatted amount:
//   1.125  1.500  1.   1E6  +3Gi    are kept
//   1.5    0.500  1000 1E5  2048Ki  become 1500m, 500m, 1k, 100e3, 2Mi
function isCanonicalText({
  integerPart,
  decimals,
  suffix,
}: {
  integerPart: string
  decimals: string
  suffix: Suffix
}): boolean {
  const integerDigits = integerPart || '0'
  if (suffix.base === 2) {
    const digitsMax = 14 - Math.floor((suffix.power * 3) / 10)
    return decimals === '' && integerDigits.length <= digitsMax && Number(integerDigits) % 8 !== 0
  }
  const digits = integerDigits + decimals
  const scale = suffix.power - decimals.length
  return (
    digits.length <= 18 &&
    scale >= -NANO_DIGITS &&
    scale % 3 === 0 &&
    !digits.endsWith('000') &&
    !digits.startsWith('0')
  )
}

// Formatting

const DECIMAL_LETTERS = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const BINARY_LETTERS = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

// E is the largest suffix, so a larger amount has a larger mantissa: "1000E".
function formatDecimal(nanos: bigint, format: QuantityFormat): string {
  const stepsMax = format === 'exponent' ? Number.POSITIVE_INFINITY : DECIMAL_LETTERS.length - 1
  const { mantissa, steps } = reduce(nanos, { factor: 1000n, stepsMax })
  if (format !== 'exponent') return `${mantissa}${DECIMAL_LETTERS[steps]}`
  const power = 3 * steps - NANO_DIGITS
  return power === 0 ? `${mantissa}` : `${mantissa}e${power}`
}

function formatBinary(units: bigint): string {
  const { mantissa, steps } = reduce(units, { factor: 1024n, stepsMax: BINARY_LETTERS.length - 1 })
  return `${mantissa}${BINARY_LETTERS[steps]}`
}

function reduce(amount: bigint, { factor, stepsMax }: { factor: bigint; stepsMax: number }) {
  let mantissa = amount
  let steps = 0
  while (steps < stepsMax && mantissa % factor === 0n) {
    mantissa /= factor
    steps += 1
  }
  return { mantissa, steps }
}

const isWhole = (nanos: bigint): boolean => nanos % NANOS_PER_UNIT === 0n

const absolute = (amount: bigint): bigint => (amount < 0n ? -amount : amount)

function divideAwayFromZero(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor
  if (quotient * divisor === amount) return quotient
  return amount < 0n ? quotient - 1n : quotient + 1n
}
