// Rates and latencies of the last hour, as the console has sampled them.
import type { Feature, HistoryResponse, HistorySample } from '../../../protocol.ts'
import { Panel } from '../../components/panel.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { formatLatency, formatRate } from '../../logic/format.ts'
import { history } from '../../state/data.ts'
import { usePolled } from '../../state/polled.ts'

type Read = (sample: HistorySample) => number | null | undefined

const STEPS = ['Scheduled', 'Provisioned', 'Bound', 'Attached', 'Published'] as const

export function HistoryPanel() {
  const { value, problem } = usePolled(history)
  const minutes = value ? Math.round((value.samples.length * value.intervalMs) / 60_000) : 0
  return (
    <Panel title="Last hour" note={value ? `${minutes} min sampled` : undefined}>
      {!value && problem !== undefined && <p class="note">{problem}</p>}
      {value && (
        <div class="trends">
          <Trend
            title="Volumes provisioned"
            value={value}
            read={(sample) => sample.provisionedPerSecond}
            format={formatRate}
            source={value.sources.metrics}
          />
          <Trend
            title="Claims bound"
            value={value}
            read={(sample) => sample.boundPerSecond}
            format={formatRate}
            source={value.sources.metrics}
          />
          <Trend
            title="Operations being retried"
            value={value}
            read={({ operations }) => operations && (operations.Retrying ?? 0)}
            format={String}
            source={value.sources.operations}
          />
          {STEPS.filter(
            (step) => !value.sources.metrics.available || value.samples.some(({ steps }) => steps?.[step]?.p99Ms),
          )
            .slice(0, value.sources.metrics.available ? STEPS.length : 1)
            .map((step) => (
              <Trend
                key={step}
                title={value.sources.metrics.available ? `Time to ${step}, p99` : 'Latency of each step'}
                value={value}
                read={({ steps }) => steps?.[step]?.p99Ms}
                format={formatLatency}
                source={value.sources.metrics}
              />
            ))}
        </div>
      )}
    </Panel>
  )
}

interface TrendProps {
  readonly title: string
  readonly value: HistoryResponse
  readonly read: Read
  format(value: number): string
  readonly source: Feature
}

function Trend({ title, value, read, format, source }: TrendProps) {
  const values = value.samples.map(read)
  const known = values.filter((item): item is number => typeof item === 'number')
  const last = known.at(-1)
  return (
    <div class="trend">
      <span class="muted">{title}</span>
      {last === undefined ? (
        source.available ? (
          <span class="muted">nothing yet</span>
        ) : (
          <Unavailable reason={source.reason ?? 'The source is not available.'} />
        )
      ) : (
        <>
          <span>
            <strong class="trend-value">{format(last)}</strong>{' '}
            <span class="muted">max {format(Math.max(...known))}</span>
          </span>
          <Sparkline values={values} label={`${title}: last ${format(last)}, maximum ${format(Math.max(...known))}`} />
        </>
      )}
    </div>
  )
}
