// Storage quotas: used and hard by namespace and class, and their usage after new claims.
import { useMemo } from 'preact/hooks'
import { formatAmount } from '../../actions/quota-effects.tsx'
import { Empty, ListCount, ListError, Skeleton } from '../../components/empty.tsx'
import { Icon } from '../../components/icon.tsx'
import { Meter } from '../../components/meter.tsx'
import { Panel } from '../../components/panel.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { formatPercent, pluralize } from '../../logic/format.ts'
import { type QuotaLimit, storageLimits } from '../../logic/quota-check.ts'
import { linkTo } from '../../logic/url.ts'
import { quotas, useCollections } from '../../state/collections.ts'
import { route, setParams } from '../../state/route.ts'
import { QuotaWhatIf } from './what-if.tsx'

/** Bounds the shown limits; the fullest come first. */
const LIMITS_MAX = 500

export function QuotasScreen() {
  useCollections(quotas)
  const { params } = route.value
  const state = quotas.state.value
  const version = quotas.version.value
  const limits = useMemo(
    () => [...quotas.rows.values()].flatMap(storageLimits).sort((a, b) => shareOf(b) - shareOf(a)),
    [version],
  )
  const matching = limits.filter(
    ({ namespace, className = '' }) =>
      (!params.ns || namespace === params.ns) &&
      (!params.q || `${namespace} ${className}`.toLowerCase().includes(params.q.toLowerCase())),
  )
  const namespaces = [...new Set(limits.map(({ namespace }) => namespace))].sort()
  return (
    <section class="screen" aria-labelledby="quotas-title">
      <header class="screen-head">
        <h1 id="quotas-title">Quotas</h1>
        <ListCount state={state}>
          {pluralize(limits.length, 'limit')} of storage in {pluralize(namespaces.length, 'namespace')}
        </ListCount>
      </header>
      <div class="screen-scroll">
        <ListError what="Quotas" state={state} />
        {state.is === 'loading' && limits.length === 0 && <Skeleton />}
        {state.is === 'synced' && limits.length === 0 && (
          <Empty
            title="No quota limits storage."
            command="kubectl create quota storage -n NAMESPACE --hard=requests.storage=100Gi,persistentvolumeclaims=20"
          >
            <p>
              A ResourceQuota with requests.storage or persistentvolumeclaims limits the claims of a namespace, in total
              or by class:
            </p>
          </Empty>
        )}
        {limits.length > 0 && (
          <div class="panels">
            <Panel
              title="Limits"
              span={8}
              isFlush
              note="fullest first"
              more={
                <label class="search search-small">
                  <span class="sr-only">Search quotas</span>
                  <Icon name="search" />
                  <input
                    type="search"
                    class="input"
                    placeholder="Namespace or class"
                    value={params.q ?? params.ns ?? ''}
                    onInput={({ currentTarget }) => setParams({ q: currentTarget.value, ns: '' })}
                  />
                </label>
              }
            >
              <LimitTable limits={matching.slice(0, LIMITS_MAX)} />
              {matching.length > LIMITS_MAX && <p class="muted">… and {matching.length - LIMITS_MAX} more</p>}
              {matching.length === 0 && <p class="muted">0 of {limits.length} limits match.</p>}
            </Panel>
            <div class="panel-column span-4">
              <QuotaWhatIf namespaces={namespaces} />
            </div>
          </div>
        )}
      </div>
    </section>
  )
}

const shareOf = ({ used, hard }: QuotaLimit): number => (used === undefined || hard === 0 ? 0 : used / hard)

const LimitTable = ({ limits }: { readonly limits: readonly QuotaLimit[] }) => (
  <table>
    <thead>
      <tr>
        <th scope="col">Namespace</th>
        <th scope="col">Quota</th>
        <th scope="col">Limit of</th>
        <th scope="col">Use</th>
        <th scope="col" class="number">
          Used
        </th>
        <th scope="col" class="number">
          Hard
        </th>
        <th scope="col" class="number">
          Left
        </th>
      </tr>
    </thead>
    <tbody>
      {limits.map((limit) => (
        <tr key={`${limit.namespace}/${limit.quota} ${limit.key}`}>
          <td>
            <a href={linkTo('claims', { ns: limit.namespace, class: limit.className })}>{limit.namespace}</a>
          </td>
          <td>{limit.quota}</td>
          <td>
            {limit.unit === 'bytes' ? 'storage' : 'claims'}
            {limit.className !== undefined && ` of class ${limit.className}`}
          </td>
          <td class="bar-cell">
            {limit.used === undefined || limit.hard === 0 ? (
              <Unavailable
                short
                reason={limit.hard === 0 ? 'The limit is 0.' : 'The quota controller has not counted this limit yet.'}
              />
            ) : (
              <span class="size-cell">
                <Meter share={limit.used / limit.hard} label={`Used of ${limit.namespace}`} />
                {formatPercent(limit.used / limit.hard)}
              </span>
            )}
          </td>
          <td class="number">{limit.used === undefined ? '–' : formatAmount(limit.used, limit)}</td>
          <td class="number">{formatAmount(limit.hard, limit)}</td>
          <td class="number">
            {limit.used === undefined ? '–' : formatAmount(Math.max(0, limit.hard - limit.used), limit)}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
