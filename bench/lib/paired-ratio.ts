// Compares two measurements that were made in turns. The speed of a shared machine changes from second to second, so each round
// is compared only with its neighbour, and the median ignores rounds that other work has disturbed.

export interface PairedRound {
  readonly value: number
  readonly reference: number
}

export interface PairedRatio {
  /** The median of the ratios of the rounds. */
  readonly median: number
  /** The true median is between these with a probability of at least 95 %, for any distribution of the ratios. */
  readonly low: number
  readonly high: number
  /** The ratio of the sums. Unlike the median, it includes costs that occur only in some rounds. */
  readonly total: number
}

/** Compares at least six rounds. With fewer, the bounds are NaN. */
export function compareRounds(rounds: readonly PairedRound[]): PairedRatio {
  const ratios = rounds.map(({ value, reference }) => value / reference).sort((a, b) => a - b)
  const below = boundIndex(ratios.length)
  const sum = (key: keyof PairedRound) => rounds.reduce((total, round) => total + round[key], 0)
  const middle = ratios.length >> 1
  return {
    median: ratios.length % 2 === 1 ? ratios[middle]! : (ratios[middle - 1]! + ratios[middle]!) / 2,
    low: ratios[below] ?? Number.NaN,
    high: ratios[ratios.length - 1 - below] ?? Number.NaN,
    total: sum('value') / sum('reference'),
  }
}

/**
 * Returns the index of the lower bound in the sorted ratios, or -1 if there are too few. Each ratio is below the true median with
 * a probability of one half, so the number of such ratios has a binomial distribution, of which each bound leaves out at most
 * 2.5 %.
 */
function boundIndex(count: number): number {
  let probability = 0.5 ** count
  let sum = probability
  let index = -1
  while (sum <= 0.025) {
    index++
    probability *= (count - index) / (index + 1)
    sum += probability
  }
  return index
}

/** Returns for example `+1.4 % (95 %: +0.3 to +2.5 %; of the sums: +1.6 %)`. */
export function ratioText({ median, low, high, total }: PairedRatio): string {
  return `${percentText(median)} % (95 %: ${percentText(low)} to ${percentText(high)} %; of the sums: ${percentText(total)} %)`
}

const percentText = (ratio: number): string => {
  const percent = (ratio - 1) * 100
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(1)}`
}
