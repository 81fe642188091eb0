// Formats sizes, rates, shares, durations and counts for human readers.

const SIZE_UNITS = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const

/** Formats bytes with a binary unit and at most one digit after the point: `512`, `1.5Gi`, `120Mi`. */
export function formatSize(bytes: number): string {
  let amount = Math.abs(bytes)
  let unit = 0
  // 1023.95 would be rounded to 1024.0.
  while (amount >= 1023.95 && unit < SIZE_UNITS.length - 1) {
    amount /= 1024
    unit++
  }
  const sign = bytes < 0 ? '-' : ''
  const digits = unit === 0 ? String(Math.round(amount)) : amount.toFixed(1).replace(/\.0$/, '')
  return `${sign}${digits}${SIZE_UNITS[unit]}`
}

/** Formats a share of a whole, rounded down, so that only the whole is 100 %. */
export const formatPercent = (fraction: number): string => `${Math.floor(fraction * 100)}%`

/** Formats a rate per second, with more decimals the smaller it is: `340/s`, `2.5/s`, `0.04/s`. */
export function formatRate(perSecond: number): string {
  const digits = perSecond >= 10 ? 0 : perSecond >= 1 ? 1 : 2
  return `${perSecond.toFixed(digits)}/s`
}

/** Formats a duration, rounded up to seconds or minutes: `43 s`, `5 min`, `2 h 10 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 90) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Formats a count with its noun: `1 volume`, `2 volumes`. */
export const formatCount = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`
