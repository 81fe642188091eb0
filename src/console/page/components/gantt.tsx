// The timeline of a claim as a Gantt chart, drawn as SVG. The table below it has the newest entries as text.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { TimelineResponse } from '../../protocol.ts'
import type { Tone } from '../logic/claim-status.ts'
import { formatLatency, formatTime } from '../logic/format.ts'
import { type Bar, layoutTimeline } from '../logic/timeline-layout.ts'

type Entry = TimelineResponse['entries'][number]

const NAME_PX = 150
const LANE_PX = 24
const TOP_PX = 34
const MARK_PX = 4
/** The labels of steps alternate between two lines, so that those of close steps do not overlap. */
const STEP_LINES = 2

export const actorOf = ({ component, user, manager }: Entry): string =>
  component || (user ?? '').replace(/^system:serviceaccount:([^:]*):/, '$1/') || manager || 'unknown'

export function Gantt({ timeline }: { readonly timeline: TimelineResponse }) {
  const frame = useRef<HTMLDivElement>(null)
  const [widthPx, setWidthPx] = useState(600)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidthPx(entry!.contentRect.width))
    observer.observe(frame.current!)
    return () => observer.disconnect()
  }, [])
  const { steps, entries } = timeline
  const stepTimes = steps.map(({ time }) => Date.parse(time))
  const layout = layoutTimeline(entries, { otherTimes: stepTimes, nameOf: actorOf })
  if (!layout) return <div ref={frame} />
  const plotPx = Math.max(80, widthPx - NAME_PX - 12)
  const x = (position: number) => NAME_PX + position * plotPx
  const heightPx = TOP_PX + layout.lanes.length * LANE_PX + 20
  return (
    <div ref={frame}>
      <svg
        class="gantt"
        viewBox={`0 0 ${widthPx} ${heightPx}`}
        height={heightPx}
        role="img"
        aria-label={`Timeline with ${entries.length} entries from ${formatTime(layout.startMs)} to ${formatTime(layout.endMs)}`}
      >
        {layout.shortenedPauses.map((pause) => (
          <g key={pause.start}>
            <rect
              class="gantt-gap"
              x={x(pause.start)}
              y={TOP_PX}
              width={(pause.end - pause.start) * plotPx}
              height={heightPx - TOP_PX - 18}
            />
            <text x={x((pause.start + pause.end) / 2)} y={heightPx - 4} text-anchor="middle">
              {formatLatency(pause.durationMs)}
            </text>
          </g>
        ))}
        {layout.lanes.map((lane, index) => (
          <g key={lane.name} transform={`translate(0 ${TOP_PX + index * LANE_PX})`}>
            <line class="gantt-rule" x1={0} x2={widthPx} y1={LANE_PX - 0.5} y2={LANE_PX - 0.5} />
            <text class="lane-name" x={0} y={16}>
              {lane.name.length > 22 ? `${lane.name.slice(0, 21)}…` : lane.name}
            </text>
            {lane.bars.map((bar, barIndex) => (
              <BarShape key={barIndex} bar={bar} x={x} />
            ))}
          </g>
        ))}
        {steps.map((step, index) => {
          const position = x(layout.positionOf(stepTimes[index]!))
          const isAtEnd = position > NAME_PX + plotPx * 0.8
          return (
            <g key={step.name}>
              <line
                class="gantt-step"
                x1={position}
                x2={position}
                y1={8 + (index % STEP_LINES) * 12}
                y2={heightPx - 18}
              />
              <text
                x={position + (isAtEnd ? -4 : 4)}
                y={11 + (index % STEP_LINES) * 12}
                text-anchor={isAtEnd ? 'end' : 'start'}
              >
                {step.name}
              </text>
            </g>
          )
        })}
      </svg>
    </div>
  )
}

function BarShape({ bar: { entry, start, end }, x }: { readonly bar: Bar<Entry>; x(position: number): number }) {
  const left = x(start)
  const title = `${entry.action}${entry.result ? ` → ${entry.result}` : ''}${entry.durationMs === undefined ? '' : `, ${formatLatency(entry.durationMs)}`}`
  if (entry.type === 'Change' || entry.type === 'Event')
    return (
      <circle class={entry.result === 'Warning' ? 'gantt-bar-warn' : 'gantt-mark'} cx={left} cy={12} r={MARK_PX}>
        <title>{title}</title>
      </circle>
    )
  return (
    <rect
      class={`gantt-bar-${toneOfResult(entry.result)}`}
      x={left}
      y={6}
      width={Math.max(3, x(end) - left)}
      height={12}
      rx={2}
    >
      <title>{title}</title>
    </rect>
  )
}

/** A stuck attempt waits for another change, which is not a failure. */
export function toneOfResult(result: string | undefined): Tone {
  if (result === undefined || result === 'Done' || result === 'OK' || result === 'Normal') return 'ok'
  if (result === 'Stuck') return 'wait'
  return result === 'Retry' || result === 'Warning' ? 'warn' : 'bad'
}
