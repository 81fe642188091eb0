// Computes how cost grows with the work: the exponent k of time = c × size^k, fitted to the measured points. Twice the work
// takes twice the time with k = 1, the same time with k = 0, and four times as long with k = 2.
import type { Figure, Growth, GrowthPoint } from './figure.ts'
import { formatAmount, formatCount } from './text.ts'

/** Above 1, because one point with an error of 20 % must not fail. */
const LINEAR_MAX = 1.1
const FLAT_MAX = 0.15

/** Fits the exponent by least squares on logarithms. */
export function estimateExponent(points: readonly GrowthPoint[]): number {
  const logs = points.map(({ size, ms }) => ({ x: Math.log(size), y: Math.log(ms) }))
  const mean = (read: (log: { x: number; y: number }) => number) =>
    logs.reduce((sum, log) => sum + read(log), 0) / logs.length
  const [meanX, meanY] = [mean(({ x }) => x), mean(({ y }) => y)]
  const spread = logs.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  return logs.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread
}

/** Growth of the total time, which is at best linear. */
export const toTotalGrowthFigure = (name: string, growth: Growth, exponentMax = LINEAR_MAX): Figure => ({
  name: `growth: ${name}`,
  unit: 'exponent',
  value: estimateExponent(growth.points),
  limit: { value: 1, of: `linear in ${growth.of}: ${pointsText(growth)}` },
  target: { valueMax: exponentMax },
  growth,
})

/** Growth of the time per operation, which should be constant. */
export const toUnitGrowthFigure = (name: string, growth: Growth, exponentMax = FLAT_MAX): Figure => ({
  name: `growth: ${name}`,
  unit: 'exponent',
  value: estimateExponent(growth.points),
  limit: { value: 0, of: `constant in ${growth.of}: ${pointsText(growth)}` },
  target: { valueMax: exponentMax },
  growth,
})

const pointsText = ({ points }: Growth): string =>
  points.map(({ size, ms }) => `${formatCount(size)} in ${formatAmount(ms, 'ms')}`).join(', ')
