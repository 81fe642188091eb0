// Shows one driver: its capabilities, the objects that use it, and the results of its calls.
import { useEffect, useRef } from 'preact/hooks'
import type { HistoryResponse, LeaksResponse } from '../../../protocol.ts'
import { Chart } from '../../components/chart.tsx'
import { Panel } from '../../components/panel.tsx'
import { StatusIcon } from '../../components/status.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { type DriverView, listCallRates, sumCalls } from '../../logic/driver-view.ts'
import { formatBytes, formatLatency, formatRate, pluralize } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import type { DriverRow } from '../../rows/cluster.ts'
import { route } from '../../state/route.ts'
import { queryOf, useRequest } from '../../state/use-request.ts'

interface DriverPanelProps {
  readonly view: DriverView
  readonly history: HistoryResponse | undefined
  readonly problem: string | undefined
  readonly nodeCount: number
}

export function DriverPanel({ view, history, problem, nodeCount }: DriverPanelProps) {
  const { name, driver, classes, nodes, unclaimed, volumes } = view
  const frame = useRef<HTMLDivElement>(null)
  const isSelected = route.value.params.driver === name
  useEffect(() => {
    if (isSelected) frame.current?.scrollIntoView({ block: 'start' })
  }, [isSelected])
  const unclaimedBytes = unclaimed.reduce((sum, { capacityBytes = 0 }) => sum + capacityBytes, 0)
  return (
    <Panel title={name} note={pluralize(volumes, 'volume')}>
      <div class="driver-columns" ref={frame}>
        <dl class="facts">
          <dt>Capabilities</dt>
          <dd>
            {driver ? (
              <Capabilities driver={driver} />
            ) : (
              <Unavailable reason="The driver has no CSIDriver object, so the defaults apply." />
            )}
          </dd>
          <dt>Classes</dt>
          <dd>
            {classes.length === 0
              ? 'none'
              : classes.map((row) => (
                  <div key={row.uid}>
                    <a href={linkTo('claims', { class: row.name })}>{row.name}</a>{' '}
                    <span class="muted">
                      {row.reclaimPolicy}, {row.waitsForConsumer ? 'waits for a pod' : 'binds immediately'},{' '}
                      {row.allowsExpansion ? 'can expand' : 'cannot expand'}
                      {row.isDefault && ', default'}
                    </span>
                  </div>
                ))}
          </dd>
          <dt>Registered on</dt>
          <dd>
            {nodes.length} of {pluralize(nodeCount, 'node')}
          </dd>
          <dt>Volumes without a claim</dt>
          <dd>
            {unclaimed.length === 0 ? (
              'none'
            ) : (
              <span
                class="status tone-warn"
                title={unclaimed
                  .slice(0, 20)
                  .map((volume) => volume.name)
                  .join(', ')}
              >
                <StatusIcon tone="warn" />
                {pluralize(unclaimed.length, 'volume')}, {formatBytes(unclaimedBytes)}
              </span>
            )}
          </dd>
          <dt>Leaked storage</dt>
          <dd>
            <Leaks name={name} />
          </dd>
        </dl>
        <Calls name={name} history={history} problem={problem} />
      </div>
    </Panel>
  )
}

/** The leaks that `stowage leaks` finds. Unavailable if the driver has no socket on the machine of the console. */
function Leaks({ name }: { readonly name: string }) {
  const { value, problem } = useRequest<LeaksResponse>(`/data/leaks${queryOf({ driver: name })}`, name)
  if (problem) return <Unavailable reason={problem} />
  if (!value) return <span class="muted">being compared</span>
  if (value.leaks.length === 0) return <span title={value.unknown.join('\n')}>none</span>
  const bytes = value.leaks.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0)
  const details = value.leaks
    .slice(0, LEAKS_SHOWN_MAX)
    .map(({ reason, handle, object, path, message }) => `${reason} ${object ?? path ?? handle}: ${message}`)
  return (
    <span class="status tone-warn" title={details.join('\n')}>
      <StatusIcon tone="warn" />
      {pluralize(value.leaks.length, 'leak')}, {formatBytes(bytes)}; <code>stowage leaks --driver {name}</code>
    </span>
  )
}

/** Bounds the leaks that are described. `stowage leaks` lists all. */
const LEAKS_SHOWN_MAX = 20

function Capabilities({ driver }: { readonly driver: DriverRow }) {
  const list: readonly (readonly [boolean, string, string])[] = [
    [driver.attachRequired, 'attaches volumes', 'no attaching'],
    [driver.storageCapacity, 'reports capacity', 'no capacity reports'],
    [driver.podInfoOnMount, 'pod info on mount', 'no pod info on mount'],
    [driver.requiresRepublish, 'republishes', 'no republishing'],
    [driver.seLinuxMount, 'SELinux mount', 'no SELinux mount'],
    [driver.lifecycleModes.includes('Ephemeral'), 'ephemeral volumes', 'no ephemeral volumes'],
  ]
  return (
    <ul class="chips">
      {list.map(([isOn, onLabel, offLabel]) => (
        <li key={onLabel} class={`tag${isOn ? '' : ' tag-off'}`}>
          {isOn ? onLabel : offLabel}
        </li>
      ))}
      <li class="tag">fsGroup {driver.fsGroupPolicy}</li>
    </ul>
  )
}

/** The table shows means over this many samples: five minutes at one sample every 10 s. */
const TABLE_SAMPLES = 30

interface CallsProps {
  readonly name: string
  readonly history: HistoryResponse | undefined
  readonly problem: string | undefined
}

function Calls({ name, history, problem }: CallsProps) {
  if (!history) return <p class="muted">{problem ?? 'Calls are being read.'}</p>
  const source = history.sources.metrics
  const totals = sumCalls(history.samples.slice(-TABLE_SAMPLES), name)
  if (!source.available || totals === undefined)
    return (
      <p class="note note-plain">
        <span>Calls are unavailable. {source.reason ?? 'No sample has calls.'}</span>
      </p>
    )
  const samples = history.samples
  if (!samples.some(({ csiCalls }) => csiCalls?.some(({ driver }) => driver === name)))
    return <p class="muted">The driver was not called in the sampled time.</p>
  return (
    <div>
      <Chart
        label={`Calls per second to ${name}`}
        timesMs={samples.map(({ time }) => Date.parse(time))}
        series={[
          { label: 'OK', values: listCallRates(samples, name, ({ code }) => code === 'OK') },
          { label: 'failed', values: listCallRates(samples, name, ({ code }) => code !== 'OK') },
        ]}
        format={formatRate}
      />
      {totals.length === 0 ? (
        <p class="muted">No calls in the last five minutes.</p>
      ) : (
        <div class="panel-scroll">
          <table class="entries">
            <thead>
              <tr>
                <th scope="col">Method</th>
                <th scope="col" class="number">
                  Calls, 5 min
                </th>
                <th scope="col">Errors by code</th>
                <th scope="col" class="number">
                  p50
                </th>
                <th scope="col" class="number">
                  p99
                </th>
              </tr>
            </thead>
            <tbody>
              {totals.map(({ method, codes, perSecond, p50Ms, p99Ms }) => {
                const errors = codes.filter(({ code, perSecond: rate }) => code !== 'OK' && rate > 0)
                return (
                  <tr key={method}>
                    <td>{method}</td>
                    <td class="number">{formatRate(perSecond)}</td>
                    <td>
                      {errors.length === 0 ? (
                        <span class="muted">none</span>
                      ) : (
                        <span class="tone-bad">
                          {errors.map(({ code, perSecond: rate }) => `${code} ${formatRate(rate)}`).join(', ')}
                        </span>
                      )}
                    </td>
                    <td class="number">{p50Ms === undefined ? '–' : formatLatency(p50Ms)}</td>
                    <td class="number">{p99Ms === undefined ? '–' : formatLatency(p99Ms)}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}
