// A small line chart without axes. Missing samples leave a gap.

interface SparklineProps {
  readonly values: readonly (number | null | undefined)[]
  readonly label: string
  /** The value at the lower edge. Default: 0. */
  readonly floor?: number
}

const WIDTH = 200
const HEIGHT = 40

export function Sparkline({ values, label, floor = 0 }: SparklineProps) {
  const known = values.filter((value): value is number => typeof value === 'number')
  const top = Math.max(floor, ...known)
  const span = top - floor || 1
  const x = (index: number) => (values.length < 2 ? 0 : (index / (values.length - 1)) * WIDTH)
  const y = (value: number) => HEIGHT - 1 - ((value - floor) / span) * (HEIGHT - 4)
  const runs = splitRuns(values)
  const line = runs.map(
    (run) => `M${run.map(([index, value]) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}`,
  )
  const area = runs.map(
    (run) =>
      `M${x(run[0]![0]).toFixed(1)} ${HEIGHT}L${run.map(([index, value]) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}L${x(run.at(-1)![0]).toFixed(1)} ${HEIGHT}Z`,
  )
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="sparkline-area" d={area.join('')} />
      <path class="sparkline-line" d={line.join('')} />
    </svg>
  )
}

/** Returns the sequences of known values with their indexes. */
function splitRuns(values: SparklineProps['values']): [number, number][][] {
  const runs: [number, number][][] = []
  let isOpen = false
  values.forEach((value, index) => {
    if (typeof value !== 'number') {
      isOpen = false
      return
    }
    if (!isOpen) runs.push([])
    isOpen = true
    runs.at(-1)!.push([index, value])
  })
  return runs
}
