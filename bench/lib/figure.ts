// A measured figure with its target and its limit. The limit is measured in the same run, so the ratio of figure and limit can
// be compared between machines and runs. Also computes the median of repeated measurements.

export interface Figure {
  readonly name: string
  readonly unit: Unit
  readonly value: number
  /** The value that the figure is compared with, in the same unit, and how it was measured. */
  readonly limit?: Comparison
  /** A published figure of another system, in the same unit, and its source. */
  readonly peer?: Comparison
  readonly target?: Target
  /** The points to which an exponent was fitted. */
  readonly growth?: Growth
}

export type Unit = '/s' | 'ms' | 'MB' | 'kB' | 'writes' | 'requests' | 'cores' | 'exponent'

export interface Comparison {
  readonly value: number
  readonly of: string
}

/** At least this share of the limit, or at least or at most this value in the figure's own unit. */
export type Target = { readonly ratioMin: number } | { readonly valueMin: number } | { readonly valueMax: number }

/** Time by size. */
export interface Growth {
  /** What the size counts, e.g. `claims`. */
  readonly of: string
  readonly points: readonly GrowthPoint[]
}

export interface GrowthPoint {
  readonly size: number
  readonly ms: number
}

/** A figure that could not be measured, and why. */
export interface MissingFigure {
  readonly name: string
  readonly message: string
}

/**
 * Returns the ratio to the limit, or undefined for an exponent or without a limit. 1 is as good as the limit, and 0.5 half as
 * good, for rates, times and sizes.
 */
export const ratioOf = (figure: Figure): number | undefined => computeRatio(figure, figure.limit)

export const peerRatioOf = (figure: Figure): number | undefined => computeRatio(figure, figure.peer)

function computeRatio({ unit, value }: Figure, comparison: Comparison | undefined): number | undefined {
  if (!comparison || unit === 'exponent') return undefined
  return unit === '/s' ? value / comparison.value : comparison.value / value
}

/** Returns whether the target is met, or undefined without a target. */
export function passes(figure: Figure): boolean | undefined {
  const { target, value } = figure
  if (!target) return undefined
  if ('ratioMin' in target) return (ratioOf(figure) ?? 0) >= target.ratioMin
  return 'valueMin' in target ? value >= target.valueMin : value <= target.valueMax
}

export function medianOf(values: readonly number[]): number {
  const sortedValues = [...values].sort((a, b) => a - b)
  const middle = sortedValues.length >> 1
  const upper = sortedValues[middle] ?? Number.NaN
  return sortedValues.length % 2 === 1 ? upper : ((sortedValues[middle - 1] ?? Number.NaN) + upper) / 2
}
