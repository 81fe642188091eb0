// A line chart over time, drawn by uPlot, which is loaded with the first chart. The legend below it has the latest values, also
// for screen readers.
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatClock } from '../logic/format.ts'

interface ChartSeries {
  readonly label: string
  /** A value per time; null leaves a gap. */
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly label: string
  /** In milliseconds. */
  readonly timesMs: readonly number[]
  readonly series: readonly ChartSeries[]
  format(value: number): string
}

const HEIGHT_PX = 180
/** Distinguishable in both themes, and also by the order in the legend. */
const SERIES_COLORS = ['#3b7ddd', '#d9822b', '#2a9d6f', '#b4569d', '#7a6ff0', '#b8860b', '#c8553d', '#5f8a8b']

export function Chart({ label, timesMs, series, format }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const data = [timesMs.map((time) => time / 1_000), ...series.map(({ values }) => [...values])] as uPlot.AlignedData
  const latest = useRef(data)
  latest.current = data
  const labels = series.map((item) => item.label).join('\n')
  useEffect(() => {
    const element = frame.current!
    let isEnded = false
    let observer: ResizeObserver | undefined
    const create = async () => {
      const { default: Plot } = await import('./uplot.ts')
      if (isEnded) return
      chart.current = new Plot(optionsOf(element, labels.split('\n'), format), latest.current, element)
      observer = new ResizeObserver(([entry]) => {
        const width = Math.floor(entry!.contentRect.width)
        if (width > 0) chart.current?.setSize({ width, height: HEIGHT_PX })
      })
      observer.observe(element)
    }
    void create()
    const theme = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => chart.current?.redraw(false, true)
    theme.addEventListener('change', redraw)
    return () => {
      isEnded = true
      observer?.disconnect()
      theme.removeEventListener('change', redraw)
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [labels])
  useEffect(() => chart.current?.setData(latest.current))
  return (
    <figure class="chart">
      <div ref={frame} class="chart-plot" role="img" aria-label={label} />
      <ul class="chart-legend">
        {series.map((item, index) => (
          <li key={item.label}>
            <span class="chart-key" style={{ background: SERIES_COLORS[index % SERIES_COLORS.length] }} />
            <span class="truncate" title={item.label}>
              {item.label}
            </span>
            <strong>{formatLast(item.values, format)}</strong>
          </li>
        ))}
      </ul>
    </figure>
  )
}

function formatLast(values: ChartSeries['values'], format: (value: number) => string): string {
  const last = values.findLast((value) => value !== null)
  return typeof last === 'number' ? format(last) : '–'
}

/** Formats times in UTC, like the rest of the page, with seconds only if the ticks are close together. */
function formatTimes(ticks: readonly number[]): string[] {
  const hasSeconds = ticks.length > 1 && ticks[1]! - ticks[0]! < 60
  return ticks.map((time) => formatClock(time * 1_000).slice(0, hasSeconds ? 8 : 5))
}

function optionsOf(element: HTMLElement, labels: readonly string[], format: (value: number) => string): uPlot.Options {
  const color = (name: string) => () => getComputedStyle(element).getPropertyValue(name)
  const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } }
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, space: 70, values: (_, ticks) => formatTimes(ticks) },
      { ...axis, size: 60, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...labels.map((text, index) => ({
        label: text,
        stroke: SERIES_COLORS[index % SERIES_COLORS.length]!,
        width: 1.5,
        points: { show: false },
      })),
    ],
  }
}
