// Formats the report of `stowage leaks`, the plan of a change and its results as text.
import { formatAge } from '../../../diagnosis/format-age.ts'
import { type Color, paint } from '../../output/color.ts'
import { formatTable } from '../../output/table.ts'
import { formatCount, formatSize } from '../../output/units.ts'
import { sumOf } from '../../space/bytes.ts'
import type { Change, ChangeAction } from './change.ts'
import type { Leak, LeakReason } from './compare.ts'
import type { DriverSummary, LeakReport } from './find-leaks.ts'

export interface FormatOptions {
  readonly nowMs: number
  readonly hasColors: boolean
}

const SIZE_COLUMN = 2
const LOSSES: ReadonlySet<LeakReason> = new Set(['PVWithoutVolume', 'HandleOfTwoPVs', 'ContentWithoutSnapshot'])

export function formatReport({ drivers, leaks, unknown }: LeakReport, options: FormatOptions): string {
  const summaries = drivers.map((summary) => `${formatSummary(summary)}\n`).join('')
  const notes = unknown.length === 0 ? '' : `\nNot known:\n${unknown.map((text) => `  ${text}\n`).join('')}`
  if (leaks.length === 0) return `${summaries}No leaks.\n${notes}`
  const rows = leaks.map((leak) => [
    paint(leak.reason, colorOf(leak), options.hasColors),
    subjectOf(leak),
    leak.sizeBytes === undefined ? '-' : formatSize(leak.sizeBytes),
    formatCreation(leak, options.nowMs),
    describeLeak(leak),
  ])
  const table = formatTable([['LEAK', 'WHAT', 'SIZE', 'AGE', 'WHY'], ...rows], { rightAligned: new Set([SIZE_COLUMN]) })
  return `${summaries}\n${table}${formatAdvice(leaks)}${notes}`
}

function describeLeak({ message, leftBecause, notDeletedBecause }: Leak): string {
  if (leftBecause !== undefined) return `${message}; left: ${leftBecause}`
  return notDeletedBecause === undefined ? message : `${message}; --delete leaves it: ${notDeletedBecause}`
}

const colorOf = ({ reason }: Leak): Color => (LOSSES.has(reason) ? 'red' : 'yellow')

function formatSummary({ driver, volumes, snapshots, pvs }: DriverSummary): string {
  const has = volumes === undefined ? 'volumes not listed' : formatCount(volumes, 'volume')
  return `${driver}: ${has}${snapshots ? `, ${formatCount(snapshots, 'snapshot')}` : ''}; ${formatCount(pvs, 'PV')}`
}

/** Objects are listed by name, as kubectl accepts it; storage that only the driver or the machine has, by handle or path. */
function subjectOf({ reason, handle = '', object, path, node }: Leak): string {
  if (reason === 'PublishedWithoutAttachment') return `${handle} on ${node}`
  if (reason === 'AttachmentNotPublished') return `volumeattachment/${object}`
  if (reason === 'ContentWithoutSnapshot') return `volumesnapshotcontent/${object}`
  return path ?? (object === undefined ? handle : `pv/${object}`)
}

const formatCreation = ({ createdAt }: Leak, nowMs: number): string =>
  createdAt === undefined ? '-' : formatAge(Math.max(0, Math.floor((nowMs - Date.parse(createdAt)) / 1_000)))

function formatAdvice(leaks: readonly Leak[]): string {
  const orphans = leaks.filter(({ reason }) => reason === 'VolumeWithoutPV' || reason === 'SnapshotWithoutContent')
  if (orphans.length === 0) return ''
  const bytes = sumOf(orphans.map(({ sizeBytes }) => sizeBytes))
  const size = bytes === undefined ? '' : `, ${formatSize(bytes)}`
  return `\n${formatCount(orphans.length, 'orphan')}${size}. stowage leaks --adopt writes PVs for volumes, stowage leaks --delete deletes orphans.\n`
}

const VERBS: Readonly<Record<ChangeAction, string>> = { adopt: 'Adopt', delete: 'Delete' }

/** Describes what will change, and what the user must know before confirming. */
export function formatPlan(action: ChangeAction, candidates: readonly Leak[]): string {
  if (candidates.length === 0) return `\nThere is nothing to ${action}.\n`
  const lines = candidates.map(({ handle, sizeBytes, driver, reason }) => {
    const kind = reason === 'SnapshotWithoutContent' ? 'snapshot' : 'volume'
    return `  ${kind} ${handle} of ${driver}${sizeBytes === undefined ? '' : `, ${formatSize(sizeBytes)}`}\n`
  })
  const warning =
    action === 'delete'
      ? 'Their data is lost. A driver that serves several clusters also lists the volumes of the others: delete only what you know.\n'
      : ''
  return `\n${VERBS[action]}:\n${lines.join('')}${warning}`
}

export function formatChange({ leak, result, pv, message }: Change): string {
  const text = { adopted: `adopted ${leak.handle} as pv/${pv}`, deleted: `deleted ${leak.handle}` }
  if (result === 'adopted' || result === 'deleted') return `${text[result]}\n`
  return `${result === 'failed' ? 'failed' : 'left'} ${leak.handle}: ${message}\n`
}
