// A measured figure beside its limit: what the same machine gave in the same run to a program that does only the
// unavoidable part. The ratio of the two says how good the figure is, whatever the machine was busy with.

export interface Figure {
  readonly name: string
  readonly unit: '/s' | 'ms' | 'MB' | 'kB' | 'writes' | 'cores'
  readonly value: number
  /** The unavoidable part, in the same unit, and what it is. */
  readonly limit?: { readonly value: number; readonly of: string }
  readonly target?: Target
}

/** At least this share of the limit, or at least or at most this value in the figure's own unit. */
export type Target = { readonly ratioMin: number } | { readonly valueMin: number } | { readonly valueMax: number }

/** 1 means as good as the limit, 0.5 half as good: rates count upwards, times and sizes downwards. */
export function ratioOf({ unit, value, limit }: Figure): number | undefined {
  if (!limit) return undefined
  return unit === '/s' ? value / limit.value : limit.value / value
}

/** Undefined where no target is set. */
export function passes(figure: Figure): boolean | undefined {
  const { target, value } = figure
  if (!target) return undefined
  if ('ratioMin' in target) return (ratioOf(figure) ?? 0) >= target.ratioMin
  return 'valueMin' in target ? value >= target.valueMin : value <= target.valueMax
}

export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
