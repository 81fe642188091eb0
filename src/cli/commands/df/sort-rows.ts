// Sorts the rows of `stowage df`. A row whose amount is not known follows the others.
import type { SpaceEntry } from './space-entries.ts'
import type { SpaceGroup } from './space-groups.ts'

export const SORT_KEYS = ['use', 'name', 'request', 'capacity', 'used', 'free', 'iops', 'growth'] as const
export type SortKey = (typeof SORT_KEYS)[number]

type Row = SpaceEntry | SpaceGroup

/** Returns the used share of a file system, or undefined if it is not known. */
export const useOf = ({ usedBytes, freeBytes }: Pick<Row, 'usedBytes' | 'freeBytes'>): number | undefined =>
  usedBytes === undefined || freeBytes === undefined || usedBytes + freeBytes === 0
    ? undefined
    : usedBytes / (usedBytes + freeBytes)

/**
 * The amount of each sort key. Rows with the largest amount are first, except for free space, where the smallest is
 * first.
 */
const AMOUNTS: Readonly<Record<Exclude<SortKey, 'name'>, (row: Row) => number | undefined>> = {
  use: useOf,
  request: ({ requestBytes }) => requestBytes,
  capacity: ({ capacityBytes }) => capacityBytes,
  used: ({ usedBytes }) => usedBytes,
  free: ({ freeBytes }) => (freeBytes === undefined ? undefined : -freeBytes),
  iops: ({ iops }) => iops,
  growth: ({ growthBytesPerDay }) => growthBytesPerDay,
}

const naturalOrder = new Intl.Collator('en', { numeric: true })

export function sortRows<R extends Row>(rows: readonly R[], key: SortKey): readonly R[] {
  const amountOf = key === 'name' ? () => undefined : AMOUNTS[key]
  return [...rows].sort((a, b) => {
    const [amountA, amountB] = [amountOf(a), amountOf(b)]
    const order = (amountB ?? Number.NEGATIVE_INFINITY) - (amountA ?? Number.NEGATIVE_INFINITY)
    return order || naturalOrder.compare(nameOf(a), nameOf(b)) // two unknown amounts have no order: NaN
  })
}

/** A row without a name follows those with one. */
const nameOf = (row: Row): string =>
  'volumes' in row ? (row.name ?? '\uffff') : `${row.namespace ?? '\uffff'}/${row.claim ?? row.volume ?? ''}`
