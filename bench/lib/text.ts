// Formats numbers, ratios, targets and durations.
import type { Target, Unit } from './figure.ts'

export const formatCount = (value: number): string => value.toLocaleString('en')

export function formatAmount(value: number, unit: Unit): string {
  if (unit === 'exponent') return value.toFixed(2)
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 2
  const number = value.toLocaleString('en', { maximumFractionDigits: digits })
  return unit === '/s' ? `${number}/s` : `${number} ${unit}`
}

/** Formats a ratio as a percentage, or as a factor if it is 10 or more. */
export function ratioText(ratio: number | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio)) return ''
  return ratio >= 10 ? `${formatCount(Math.round(ratio))} ×` : `${Math.round(ratio * 100)} %`
}

export function targetText(target: Target, unit: Unit): string {
  if ('ratioMin' in target) return `≥ ${ratioText(target.ratioMin)}`
  return 'valueMin' in target ? `≥ ${formatAmount(target.valueMin, unit)}` : `≤ ${formatAmount(target.valueMax, unit)}`
}

/** 95 → `1:35` */
export function minutesText(seconds: number): string {
  const wholeSeconds = Math.max(0, Math.round(seconds))
  return `${Math.floor(wholeSeconds / 60)}:${String(wholeSeconds % 60).padStart(2, '0')}`
}
