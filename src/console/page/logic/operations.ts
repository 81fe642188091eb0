// Groups and sorts operations, and returns their status and the names of their kinds for `stowage retry`.
import type { OperationRow } from '../rows/cluster.ts'
import type { StatusWord } from './claim-status.ts'
import { compareKeys } from './claim-view.ts'
import type { SortOrder } from './url.ts'

export const GROUPINGS = ['driver', 'reason', 'component', 'operation'] as const
export type Grouping = (typeof GROUPINGS)[number]

export const isGrouping = (text: string | undefined): text is Grouping => GROUPINGS.some((name) => name === text)

const NONE: Readonly<Record<Grouping, string>> = {
  driver: 'no driver response',
  reason: 'no reason',
  component: 'no component',
  operation: 'no operation',
}

export const groupOf = (row: OperationRow, grouping: Grouping): string => row[grouping] || NONE[grouping]

export interface OperationGroup {
  readonly name: string
  readonly count: number
  readonly running: number
  readonly retrying: number
  readonly waiting: number
  readonly attemptsMax: number
  readonly oldestMs: number | undefined
}

/** Returns the groups, those with the most operations in the phase Retrying first. */
export function groupOperations(rows: readonly OperationRow[], grouping: Grouping): OperationGroup[] {
  const groups = new Map<string, { -readonly [K in keyof OperationGroup]: OperationGroup[K] }>()
  for (const row of rows) {
    const name = groupOf(row, grouping)
    const group = groups.get(name) ?? {
      ...{ name, count: 0, running: 0, retrying: 0, waiting: 0, attemptsMax: 0, oldestMs: undefined },
    }
    group.count++
    if (row.phase === 'Running') group.running++
    if (row.phase === 'Retrying') group.retrying++
    if (row.phase === 'Waiting') group.waiting++
    group.attemptsMax = Math.max(group.attemptsMax, row.attempts)
    if (row.startedMs !== undefined) group.oldestMs = Math.min(group.oldestMs ?? row.startedMs, row.startedMs)
    groups.set(name, group)
  }
  return [...groups.values()].sort((a, b) => b.retrying - a.retrying || b.count - a.count)
}

export const statusOfOperation = ({ phase }: Pick<OperationRow, 'phase'>): StatusWord => ({
  word: phase,
  tone: phase === 'Retrying' ? 'bad' : phase === 'Running' ? 'busy' : 'wait',
})

const SORT_KEYS: Readonly<Record<string, (row: OperationRow) => string | number | undefined>> = {
  object: ({ namespace, objectName }) => `${namespace}/${objectName}`,
  operation: ({ operation }) => operation,
  phase: ({ phase }) => phase,
  reason: ({ reason }) => reason || undefined,
  attempts: ({ attempts }) => attempts,
  next: ({ nextMs }) => nextMs,
  answer: ({ lastResponse }) => lastResponse,
  age: ({ startedMs }) => startedMs,
}

export function compareOperations({ column, isDescending }: SortOrder): (a: OperationRow, b: OperationRow) => number {
  const key = SORT_KEYS[column] ?? SORT_KEYS.attempts!
  const sign = isDescending !== (column === 'age') ? -1 : 1
  return (a, b) =>
    compareKeys(key(a), key(b), sign) || compareKeys(a.objectName, b.objectName, 1) || compareKeys(a.uid, b.uid, 1)
}

const RETRY_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  Pod: 'pod',
  VolumeAttachment: 'va',
  Node: 'node',
  VolumeAttributesClass: 'vac',
}

/** Returns the kind as `stowage retry` accepts it, or undefined if it accepts no objects of this kind. */
export const retryKindOf = ({ objectKind }: Pick<OperationRow, 'objectKind'>): string | undefined =>
  RETRY_KINDS[objectKind]
