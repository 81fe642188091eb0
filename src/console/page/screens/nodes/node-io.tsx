// IO of a node's volumes, live: a chart and a table, with the busiest volumes first.
import { useSignal } from '@preact/signals'
import type { DfClaim } from '../../../protocol.ts'
import { Chart } from '../../components/chart.tsx'
import { Meter } from '../../components/meter.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { formatBytes, formatRate } from '../../logic/format.ts'
import type { NodeView } from '../../logic/node-view.ts'
import { linkTo } from '../../logic/url.ts'
import { useIoHistory } from '../../state/io-history.ts'

const SERIES_MAX = 6
/** Bounds the rows; the busiest volumes come first. */
const ROWS_MAX = 100

const MEASURES = {
  throughput: {
    label: 'Throughput',
    read: (usage: DfClaim) => usage.throughputBytes,
    format: (value: number) => `${formatBytes(value)}/s`,
  },
  iops: { label: 'Operations', read: (usage: DfClaim) => usage.iops, format: formatRate },
} as const
type MeasureName = keyof typeof MEASURES

export function NodeIo({ view: { name, claims } }: { readonly view: NodeView }) {
  const measure = useSignal<MeasureName>('throughput')
  return (
    <>
      <h3>IO now per volume</h3>
      <div class="chips">
        {(Object.keys(MEASURES) as MeasureName[]).map((key) => (
          <button
            key={key}
            type="button"
            class="chip"
            aria-pressed={measure.value === key}
            onClick={() => {
              measure.value = key
            }}
          >
            {MEASURES[key].label}
          </button>
        ))}
      </div>
      <IoChart key={measure.value} measure={measure.value} node={name} claims={claims} />
    </>
  )
}

interface IoChartProps {
  readonly measure: MeasureName
  readonly node: string
  readonly claims: readonly ClaimView[]
}

function IoChart({ measure, node, claims }: IoChartProps) {
  const { label, read, format } = MEASURES[measure]
  const history = useIoHistory(read)
  const amountOf = ({ usage }: ClaimView) => (usage ? read(usage) : undefined)
  const measured = claims.filter((claim) => amountOf(claim) !== undefined)
  const busiest = measured.toSorted((a, b) => amountOf(b)! - amountOf(a)!)
  const rows = [...busiest, ...claims.filter((claim) => amountOf(claim) === undefined)].slice(0, ROWS_MAX)
  if (claims.length === 0) return <p class="muted">There are no volumes on this node.</p>
  return (
    <>
      {measured.length === 0 ? (
        <p class="note note-plain">
          IO is unavailable:{' '}
          {claims.find(({ usage }) => usage?.unknownReason)?.usage?.unknownReason ??
            'no volume of this node is measured.'}
        </p>
      ) : (
        <Chart
          label={`${label} of the busiest volumes of ${node}`}
          timesMs={history.timesMs}
          series={busiest.slice(0, SERIES_MAX).map(({ namespace, name }) => ({
            label: `${namespace}/${name}`,
            values: history.valuesOf(`${namespace}/${name}`),
          }))}
          format={format}
        />
      )}
      <div class="panel-scroll">
        <table class="entries">
          <thead>
            <tr>
              <th scope="col">Claim</th>
              <th scope="col" class="number">
                Used
              </th>
              <th scope="col" class="number">
                Operations
              </th>
              <th scope="col" class="number">
                Throughput
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((view) => (
              <tr key={view.uid}>
                <td class="wrap-anywhere">
                  <a href={linkTo('claims', { claim: `${view.namespace}/${view.name}` })}>
                    {view.namespace}/{view.name}
                  </a>
                </td>
                <td class="number">
                  {view.usedShare === undefined ? (
                    <Unavailable short reason={view.usage?.unknownReason ?? 'not measured'} />
                  ) : (
                    <span class="size-cell">
                      <Meter share={view.usedShare} label="Used" />
                      {formatBytes(view.usage!.usedBytes!)}
                    </span>
                  )}
                </td>
                <td class="number">{view.usage?.iops === undefined ? '–' : formatRate(view.usage.iops)}</td>
                <td class="number">
                  {view.usage?.throughputBytes === undefined ? '–' : `${formatBytes(view.usage.throughputBytes)}/s`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {claims.length > rows.length && <a href={linkTo('claims', { node })}>All {claims.length} claims of this node</a>}
    </>
  )
}
