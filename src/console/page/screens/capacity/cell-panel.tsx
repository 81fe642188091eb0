// The amounts of one class in one segment, and the claims whose volumes are there.
import { Age } from '../../components/age.tsx'
import { Panel } from '../../components/panel.tsx'
import { Status } from '../../components/status.tsx'
import { Unavailable } from '../../components/unavailable.tsx'
import { formatBytes, pluralize } from '../../logic/format.ts'
import type { HeatCell, HeatRow } from '../../logic/heat-map.ts'
import { linkTo } from '../../logic/url.ts'
import { viewOfClaim } from '../../state/claim-table.ts'
import { oldestChange, type ReportAges } from './report-ages.ts'

/** Bounds the listed claims, largest first. */
const CLAIMS_MAX = 15

interface CellPanelProps {
  readonly row: HeatRow
  readonly cell: HeatCell
  readonly ages: ReportAges
}

export function CellPanel({ row, cell, ages }: CellPanelProps) {
  const changed = oldestChange(cell.reports, ages)
  const views = cell.claims.flatMap((claim) => viewOfClaim(claim) ?? [])
  const largest = views.sort((a, b) => (b.claim.capacityBytes ?? 0) - (a.claim.capacityBytes ?? 0)).slice(0, CLAIMS_MAX)
  const node = row.nodes.length === 1 ? row.nodes[0] : undefined
  return (
    <Panel title={`${cell.className || 'no class'} in ${row.name}`}>
      <dl class="facts">
        <dt>Free</dt>
        <dd>
          {cell.freeBytes === undefined ? (
            <Unavailable reason="The driver reports no capacity of this class here." />
          ) : (
            formatBytes(cell.freeBytes)
          )}
        </dd>
        <dt>Largest volume</dt>
        <dd>
          {cell.largestBytes === undefined ? (
            <Unavailable reason="The driver does not report the size of the largest volume." />
          ) : (
            formatBytes(cell.largestBytes)
          )}
        </dd>
        <dt>Promised</dt>
        <dd>
          {formatBytes(cell.promisedBytes)} to {pluralize(cell.volumes, 'volume')}
        </dd>
        <dt>Used</dt>
        <dd>
          {cell.usedBytes === undefined ? (
            <Unavailable reason="No volume of this class is measured here." />
          ) : (
            `${formatBytes(cell.usedBytes)} of ${pluralize(cell.measuredVolumes, 'measured volume')}`
          )}
        </dd>
        <dt>Report changed</dt>
        <dd>
          {changed === undefined ? (
            <Unavailable reason="The time of the last change of the report could not be read." />
          ) : (
            <>
              <Age timeMs={changed} /> ago
            </>
          )}
        </dd>
      </dl>
      <div>
        <h3>Claims there</h3>
        {largest.length === 0 ? (
          <p class="muted">none</p>
        ) : (
          <ul class="list">
            {largest.map((view) => (
              <li key={view.uid}>
                <a class="truncate" href={linkTo('claims', { claim: `${view.namespace}/${view.name}` })}>
                  {view.namespace}/{view.name}
                </a>
                <span class="nowrap">
                  <Status {...view.status} /> {formatBytes(view.claim.capacityBytes ?? 0)}
                </span>
              </li>
            ))}
          </ul>
        )}
        {cell.claims.length > largest.length && (
          <a href={linkTo('claims', { class: cell.className, node })}>All {cell.claims.length} claims</a>
        )}
      </div>
    </Panel>
  )
}
