// An independent implementation of quantities as integers of billionths: parsing, comparison and canonical formatting.
//   1.5Gi → 1536Mi     1000M → 1G     0.5 → 500m     1e4 → 10e3

const NANO = 9
const DECIMAL: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const GRAMMAR = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/
/** Bound of the exponent and of the number of digits. Larger values are rejected. */
const EXPONENT_MAX = 400

export interface Amount {
  readonly nanos: bigint
  readonly style: 'decimal' | 'binary' | 'exponent'
}

export function parseQuantity(text: unknown): Amount | undefined {
  const match = typeof text === 'string' ? GRAMMAR.exec(text) : null
  if (!match) return undefined
  const [, sign, digits = '', suffix = '', exponent] = match
  const [whole = '', fraction = ''] = digits.split('.')
  const power = exponent === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponent)
  if (Math.abs(power) > EXPONENT_MAX || digits.length > EXPONENT_MAX) return undefined
  const binary = BINARY.indexOf(suffix)
  const unscaled = BigInt(whole + fraction) * 1024n ** BigInt(binary + 1)
  const nanos = shift(unscaled, power - fraction.length + NANO)
  return {
    nanos: sign === '-' ? -nanos : nanos,
    style: binary >= 0 ? 'binary' : exponent === undefined ? 'decimal' : 'exponent',
  }
}

/** Multiplies by a power of ten, rounding up. */
function shift(value: bigint, power: number): bigint {
  if (power >= 0) return value * 10n ** BigInt(power)
  const divisor = 10n ** BigInt(-power)
  return (value + divisor - 1n) / divisor
}

export function formatQuantity({ nanos, style }: Amount): string {
  const unit = 10n ** BigInt(NANO)
  const size = nanos < 0n ? -nanos : nanos
  const sign = nanos < 0n ? '-' : ''
  if (size === 0n) return '0'
  if (style === 'binary' && size >= 1024n * unit && size % unit === 0n) {
    let whole = size / unit
    let power = 0
    while (whole % 1024n === 0n && power < BINARY.length) {
      whole /= 1024n
      power++
    }
    return `${sign}${whole}${power === 0 ? '' : BINARY[power - 1]}`
  }
  let mantissa = size
  let power = -NANO
  while (mantissa % 1000n === 0n && (style === 'exponent' || power < 18)) {
    mantissa /= 1000n
    power += 3
  }
  if (style === 'exponent') return `${sign}${mantissa}${power === 0 ? '' : `e${power}`}`
  return `${sign}${mantissa}${Object.keys(DECIMAL).find((suffix) => DECIMAL[suffix] === power)}`
}

/**
 * Whether the API returns the text unchanged, even if it is not canonical. Examples: 1.125, 1E6, 10e+3 (the exponent is a
 * multiple of three without the point, and the digits do not end with 000), 3Gi and 010Ki (not a multiple of 8).
 */
export function keepsFormat(text: string): boolean {
  const [, , digits = '', suffix = '', exponent] = GRAMMAR.exec(text) ?? []
  const [whole = '', fraction = ''] = digits.split('.')
  const shifted = (whole.replace(/^0+/, '') || '0') + fraction
  const binary = BINARY.indexOf(suffix) + 1
  if (binary > 0) {
    const isSmall = 15 - shifted.length - binary * 3 - 1 >= 0
    return fraction === '' && isSmall && BigInt(shifted) % 8n !== 0n
  }
  const scale = (exponent === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponent)) - fraction.length
  const isExact = shifted.length <= 18 && scale >= -NANO && scale % 3 === 0
  return isExact && !shifted.endsWith('000') && !shifted.startsWith('0')
}

/** Returns a negative, zero or positive number. An invalid quantity counts as zero, because another check reports it. */
export function compare(a: unknown, b: unknown): number {
  const difference = nanosOf(a) - nanosOf(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

export const nanosOf = (text: unknown): bigint => parseQuantity(text)?.nanos ?? 0n
export const isWhole = (text: unknown): boolean => nanosOf(text) % 10n ** BigInt(NANO) === 0n
export const isNegative = (text: unknown): boolean => nanosOf(text) < 0n
export const isPositive = (text: unknown): boolean => nanosOf(text) > 0n

/** Whether two resource lists have equal amounts, regardless of their format. */
export function hasSameAmounts(a: Record<string, string> = {}, b: Record<string, string> = {}): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every(
    (key) => key in a && key in b && compare(a[key], b[key]) === 0,
  )
}
