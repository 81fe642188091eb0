// Formats the rows of `stowage df` as a table, followed by the reasons for unknown amounts.
import { drawBar } from '../../output/bar.ts'
import { type Color, paint } from '../../output/color.ts'
import { formatTable } from '../../output/table.ts'
import { formatPercent, formatSize } from '../../output/units.ts'
import { useOf } from './sort-rows.ts'
import type { SpaceEntry } from './space-entries.ts'
import type { Grouping, SpaceGroup } from './space-groups.ts'

export interface TableStyle {
  readonly hasColors: boolean
  /** Whether a bar shows the used share. */
  readonly hasBars: boolean
}

/** Shown for an amount that is not known. A zero would be wrong. */
const UNKNOWN = 'unknown'
/** Shown for an attribute that an object does not have. */
const NONE = '-'
const BAR_WIDTH = 10

interface Column<R> {
  readonly title: string
  readonly isNumber?: boolean
  readonly cell: (row: R, style: TableStyle) => string
}

type Amounts = Pick<
  SpaceGroup,
  | 'requestBytes'
  | 'capacityBytes'
  | 'usedBytes'
  | 'freeBytes'
  | 'inodes'
  | 'inodesUsed'
  | 'iops'
  | 'throughputBytes'
  | 'growthBytesPerDay'
>

const size = (bytes: number | undefined): string => (bytes === undefined ? UNKNOWN : formatSize(bytes))

const USAGE_COLUMNS: readonly Column<Amounts>[] = [
  { title: 'USED', isNumber: true, cell: ({ usedBytes }) => size(usedBytes) },
  { title: 'FREE', isNumber: true, cell: ({ freeBytes }) => size(freeBytes) },
  {
    title: 'USE',
    isNumber: true,
    cell: (row) => {
      const use = useOf(row)
      return use === undefined ? UNKNOWN : formatPercent(use)
    },
  },
]

const BAR_COLUMN: Column<Amounts> = {
  title: '',
  cell: (row, { hasColors }) => {
    const use = useOf(row)
    return use === undefined ? '' : paint(drawBar(use, BAR_WIDTH), colorOf(use), hasColors)
  },
}

const HIGH_USE = 0.75
const FULL_USE = 0.9
const colorOf = (use: number): Color => (use >= FULL_USE ? 'red' : use >= HIGH_USE ? 'yellow' : 'green')

const INODES_COLUMN: Column<Amounts> = {
  title: 'INODES',
  isNumber: true,
  cell: ({ inodes, inodesUsed }) =>
    inodes === undefined || inodesUsed === undefined || inodes === 0 ? UNKNOWN : formatPercent(inodesUsed / inodes),
}

const GROWTH_COLUMN: Column<Amounts> = {
  title: 'GROWTH/DAY',
  isNumber: true,
  cell: ({ growthBytesPerDay }) => size(growthBytesPerDay),
}

/** `12/500`: the current amount, and the limit if there is one. */
const formatLimit = (used: string, limit: string | undefined): string =>
  limit === undefined ? used : `${used}/${limit}`
const count = (amount: number | undefined): string => (amount === undefined ? UNKNOWN : String(Math.round(amount)))
const sizeIfSet = (bytes: number | undefined): string | undefined =>
  bytes === undefined ? undefined : formatSize(bytes)

const CLAIM_COLUMNS: readonly Column<SpaceEntry>[] = [
  { title: 'NAMESPACE', cell: ({ namespace = NONE }) => namespace },
  { title: 'CLAIM', cell: ({ claim = NONE }) => claim },
  { title: 'CLASS', cell: ({ class: className = NONE }) => className },
  { title: 'NODE', cell: ({ node = NONE }) => node },
  { title: 'REQUEST', isNumber: true, cell: ({ requestBytes }) => size(requestBytes) },
  {
    title: 'CAPACITY',
    isNumber: true,
    cell: ({ volume, capacityBytes }) => (volume === undefined ? NONE : size(capacityBytes)),
  },
  ...USAGE_COLUMNS,
  BAR_COLUMN,
  INODES_COLUMN,
  {
    title: 'IOPS',
    isNumber: true,
    cell: ({ iops, iopsLimit }) => formatLimit(count(iops), iopsLimit === undefined ? undefined : String(iopsLimit)),
  },
  {
    title: 'BYTES/S',
    isNumber: true,
    cell: ({ throughputBytes, throughputLimitBytes }) =>
      formatLimit(size(throughputBytes), sizeIfSet(throughputLimitBytes)),
  },
  GROWTH_COLUMN,
]

const groupColumns = (grouping: Grouping): readonly Column<SpaceGroup>[] => [
  ...(grouping === 'pool' ? [{ title: 'DRIVER', cell: ({ driver = NONE }: SpaceGroup) => driver }] : []),
  { title: grouping.toUpperCase(), cell: ({ name = NONE }) => name },
  { title: 'VOLUMES', isNumber: true, cell: ({ volumes }) => String(volumes) },
  { title: 'REQUEST', isNumber: true, cell: ({ requestBytes }) => sizeIfSet(requestBytes) ?? NONE },
  { title: 'CAPACITY', isNumber: true, cell: ({ capacityBytes }) => sizeIfSet(capacityBytes) ?? NONE },
  { title: 'MEASURED', isNumber: true, cell: ({ volumes, measuredVolumes }) => `${measuredVolumes}/${volumes}` },
  ...USAGE_COLUMNS.map(({ cell, ...column }) => ({ ...column, cell: ifVolumes(cell) })),
  BAR_COLUMN,
  { ...INODES_COLUMN, cell: ifVolumes(INODES_COLUMN.cell) },
  { title: 'IOPS', isNumber: true, cell: ifVolumes(({ iops }) => count(iops)) },
  { title: 'BYTES/S', isNumber: true, cell: ifVolumes(({ throughputBytes }) => size(throughputBytes)) },
  { ...GROWTH_COLUMN, cell: ifVolumes(GROWTH_COLUMN.cell) },
  grouping === 'namespace'
    ? { title: 'QUOTA', isNumber: true, cell: ({ quota }) => (quota ? formatQuota(quota) : NONE) }
    : { title: 'AVAILABLE', isNumber: true, cell: ({ availableBytes }) => size(availableBytes) },
]

const ifVolumes =
  (cell: Column<Amounts>['cell']): Column<SpaceGroup>['cell'] =>
  (group, style) =>
    group.volumes === 0 ? NONE : cell(group, style)

const formatQuota = ({ usedBytes, hardBytes }: NonNullable<SpaceGroup['quota']>): string =>
  `${formatSize(usedBytes)}/${formatSize(hardBytes)}`

export const formatClaims = (entries: readonly SpaceEntry[], style: TableStyle): string =>
  `${formatRows(entries, CLAIM_COLUMNS, style)}${formatReasons(entries)}`

export const formatGroups = (groups: readonly SpaceGroup[], grouping: Grouping, style: TableStyle): string =>
  formatRows(groups, groupColumns(grouping), style)

function formatRows<R>(rows: readonly R[], columns: readonly Column<R>[], style: TableStyle): string {
  const shownColumns = columns.filter(({ title }) => style.hasBars || title !== BAR_COLUMN.title)
  const cells = rows.map((row) => shownColumns.map(({ cell }) => cell(row, style)))
  const rightAligned = new Set(shownColumns.flatMap(({ isNumber }, index) => (isNumber ? [index] : [])))
  return formatTable([shownColumns.map(({ title }) => title), ...cells], { rightAligned })
}

/** Returns a line per reason, with the number of claims that it applies to. */
function formatReasons(entries: readonly SpaceEntry[]): string {
  const counts = new Map<string, number>()
  for (const { unknownReason } of entries)
    if (unknownReason !== undefined) counts.set(unknownReason, (counts.get(unknownReason) ?? 0) + 1)
  const lines = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([reason, claims]) => `  ${claims} ${claims === 1 ? 'claim' : 'claims'}: ${reason}\n`)
  return lines.length === 0 ? '' : `\nUsage is unknown:\n${lines.join('')}`
}
