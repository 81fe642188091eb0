// The heat map as a table: a row per segment, a column per class, a button per cell.
import { Age } from '../../components/age.tsx'
import { formatBytes, formatPercent } from '../../logic/format.ts'
import { type HeatCell, type HeatMap, promisedShare } from '../../logic/heat-map.ts'
import { oldestChange, type ReportAges } from './report-ages.ts'

interface HeatTableProps {
  readonly map: HeatMap
  readonly ages: ReportAges
  readonly selected: HeatCell | undefined
  onSelect(cell: HeatCell): void
}

export const HeatTable = ({ map, ages, selected, onSelect }: HeatTableProps) => (
  <table class="heat">
    <thead>
      <tr>
        <th scope="col">Segment</th>
        {map.classes.map((name) => (
          <th key={name} scope="col">
            {name || 'no class'}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {map.rows.map((row) => (
        <tr key={row.key}>
          <th scope="row" title={row.key || 'all nodes'}>
            {row.name}
            {row.nodes.length > 1 && <span class="muted"> {row.nodes.length} nodes</span>}
          </th>
          {map.classes.map((name) => {
            const cell = row.cells.get(name)
            return (
              <td key={name}>
                {cell ? (
                  <Cell cell={cell} place={row.name} ages={ages} isSelected={cell === selected} onSelect={onSelect} />
                ) : (
                  <span class="muted">–</span>
                )}
              </td>
            )
          })}
        </tr>
      ))}
    </tbody>
  </table>
)

interface CellProps {
  readonly cell: HeatCell
  readonly place: string
  readonly ages: ReportAges
  readonly isSelected: boolean
  onSelect(cell: HeatCell): void
}

/** The strongest tint of a cell, at which text still has a contrast of 4.5. */
const TINT_MAX = 0.34

function Cell({ cell, place, ages, isSelected, onSelect }: CellProps) {
  const share = promisedShare(cell)
  const free = cell.freeBytes === undefined ? 'free unknown' : `${formatBytes(cell.freeBytes)} free`
  const changed = oldestChange(cell.reports, ages)
  return (
    <button
      type="button"
      class={`heat-cell${cell.freeBytes === 0 ? ' heat-full' : ''}`}
      aria-pressed={isSelected}
      style={share === undefined ? {} : { '--tint': String(share * TINT_MAX) }}
      onClick={() => onSelect(cell)}
    >
      <span class="sr-only">
        {cell.className} in {place}:
      </span>
      <strong>{free}</strong>
      <span>
        {formatBytes(cell.promisedBytes)} promised
        {share !== undefined && ` (${formatPercent(share)})`}
      </span>
      <span class="muted">
        {cell.volumes} {cell.volumes === 1 ? 'volume' : 'volumes'}
        {changed !== undefined && (
          <>
            {' '}
            · <Age timeMs={changed} /> old
          </>
        )}
      </span>
    </button>
  )
}
