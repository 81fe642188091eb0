// Formats numbers, sizes, rates and times for the page. Sizes use the binary units of the API. Callers show unknown amounts with
// the reason instead of formatting them.
import { shortDuration } from '../../../api/columns.ts'

const BINARY_UNITS = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const

/** Formats bytes with a binary unit, and amounts below 100 with at most three significant digits: `0`, `512`, `1.5Gi`, `120Gi`. */
export function formatBytes(bytes: number): string {
  const [amount, unit] = scaleBytes(Math.abs(bytes))
  return `${bytes < 0 ? '-' : ''}${trimDigits(amount)}${unit}`
}

function scaleBytes(bytes: number): [number, string] {
  let amount = bytes
  let unit = 0
  // 1023.6Mi would be rounded to 1024Mi.
  while (amount >= 1023.5 && unit < BINARY_UNITS.length - 1) {
    amount /= 1024
    unit++
  }
  return [amount, BINARY_UNITS[unit]!]
}

const trimDigits = (amount: number): string =>
  amount >= 100 || Number.isInteger(amount) ? String(Math.round(amount)) : String(Number(amount.toPrecision(3)))

const COUNT = new Intl.NumberFormat('en-US')
/** Formats an integer with separators: `12,408`. */
export const formatCount = (count: number): string => COUNT.format(Math.round(count))

/** `1 claim`, `12,408 claims`. */
export const pluralize = (count: number, noun: string, plural = `${noun}s`): string =>
  `${formatCount(count)} ${count === 1 ? noun : plural}`

/** Formats a share between 0 and 1: `7%`, `0.4%`. */
export function formatPercent(share: number): string {
  const percent = share * 100
  return `${percent > 0 && percent < 1 ? Number(percent.toPrecision(1)) : Math.round(percent)}%`
}

/** Formats a rate per second: `0.25/s`, `120/s`. */
export const formatRate = (perSecond: number): string => `${trimDigits(perSecond)}/s`

/** Formats a latency: `430ms`, `1.2s`, `3m20s`. */
export function formatLatency(ms: number): string {
  if (ms < 1) return `${Number(ms.toPrecision(1))}ms`
  if (ms < 1_000) return `${Math.round(ms)}ms`
  return ms < 120_000 ? `${Number((ms / 1_000).toPrecision(3))}s` : shortDuration(ms)
}

/** Formats the age of a time in milliseconds as kubectl does. */
export const formatAge = (timeMs: number | undefined, nowMs: number): string =>
  timeMs === undefined ? '–' : shortDuration(Math.max(0, nowMs - timeMs))

/** Formats a time for titles: `2026-11-18 00:41:07 UTC`. */
export const formatTime = (timeMs: number): string =>
  `${new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** Formats the time of day: `00:41:07`. */
export const formatClock = (timeMs: number): string => new Date(timeMs).toISOString().slice(11, 19)
