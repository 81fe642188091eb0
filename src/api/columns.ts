// Table columns that several kinds share, the format of ages and durations in them, and the cells of rows.
import type { Column, ColumnContext, KubeObject } from './kind.ts'

export const nameColumn: Column<KubeObject> = {
  name: 'Name',
  type: 'string',
  format: 'name',
  doc: 'Name of the object, unique within its namespace.',
  cell: (object) => object.metadata.name,
}

export const ageColumn: Column<KubeObject> = {
  name: 'Age',
  type: 'string',
  doc: 'Time since the object was created.',
  cell: (object, { nowMs }) => ageOf(object.metadata.creationTimestamp, nowMs),
}

export const createdAtColumn: Column<KubeObject> = {
  name: 'Created At',
  type: 'date',
  doc: 'When the object was created.',
  cell: (object) => object.metadata.creationTimestamp ?? null,
}

/** The volume mode of a claim or volume. */
export const volumeModeColumn: Column<KubeObject & { readonly spec?: { readonly volumeMode?: string } }> = {
  name: 'VolumeMode',
  type: 'string',
  doc: 'Whether the volume is a file system or a raw device.',
  wide: true,
  cell: ({ spec }) => spec?.volumeMode ?? '<unset>',
}

export const ageOf = (timestamp: string | undefined, nowMs: number): string =>
  timestamp ? shortDuration(nowMs - Date.parse(timestamp)) : '<unknown>'

/** Formats a duration as kubectl does: 59s, 3m20s, 45m, 5h10m, 3d4h, 80d, 2y30d, 9y. */
export function shortDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return formatPair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return formatPair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return formatPair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  if (days < 2920) return formatPair(years, 'y', days % 365, 'd')
  return `${years}y`
}

const formatPair = (larger: number, largerUnit: string, smaller: number, smallerUnit: string): string =>
  smaller === 0 ? `${larger}${largerUnit}` : `${larger}${largerUnit}${smaller}${smallerUnit}`

/** Returns the cell of a row; empty if the object has no value for it. */
export function cellOf<T>(column: Column<T>, object: T, context: ColumnContext): string | number | boolean | null {
  const cell = column.cell(object, context)
  return cell === undefined ? '' : cell
}
