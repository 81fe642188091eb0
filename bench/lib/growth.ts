// How cost grows with the work: the exponent k of time = c × size^k that fits the measured points best. 1.00 means that
// twice the work takes twice the time, 0.00 that it makes no difference, 2.00 that it takes four times as long.
import type { Figure, Growth, GrowthPoint } from './figure.ts'
import { amount, count } from './text.ts'

/** Above linear by so much that a point that is off by a fifth does not fail alone. */
const LINEAR_MAX = 1.1
const FLAT_MAX = 0.15

/** Least squares over the logarithms. */
export function exponentOf(points: readonly GrowthPoint[]): number {
  const logs = points.map(({ size, ms }) => ({ x: Math.log(size), y: Math.log(ms) }))
  const mean = (read: (log: { x: number; y: number }) => number) =>
    logs.reduce((sum, log) => sum + read(log), 0) / logs.length
  const [meanX, meanY] = [mean(({ x }) => x), mean(({ y }) => y)]
  const spread = logs.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  return logs.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread
}

/** The time of all of them together: linear is as good as it gets. */
export const growthOfAll = (name: string, growth: Growth, exponentMax = LINEAR_MAX): Figure => ({
  name: `growth: ${name}`,
  unit: 'exponent',
  value: exponentOf(growth.points),
  limit: { value: 1, of: `linear in ${growth.of}: ${pointsText(growth)}` },
  target: { valueMax: exponentMax },
  growth,
})

/** The time of each, among ever more others: it need not grow at all. */
export const growthOfEach = (name: string, growth: Growth, exponentMax = FLAT_MAX): Figure => ({
  name: `growth: ${name}`,
  unit: 'exponent',
  value: exponentOf(growth.points),
  limit: { value: 0, of: `the same with any number of ${growth.of}: ${pointsText(growth)}` },
  target: { valueMax: exponentMax },
  growth,
})

const pointsText = ({ points }: Growth): string =>
  points.map(({ size, ms }) => `${count(size)} in ${amount(ms, 'ms')}`).join(', ')
