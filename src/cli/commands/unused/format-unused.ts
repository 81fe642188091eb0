// Formats the result of `stowage unused`: a table, the commands that remove or explain the objects, and the space that their
// removal frees.
import { paint } from '../../output/color.ts'
import { formatTable } from '../../output/table.ts'
import { formatSize } from '../../output/units.ts'
import type { UnusedObject } from './find-unused.ts'

export interface UnusedReport {
  readonly items: readonly UnusedObject[]
  /** The known bytes that are freed if all objects are removed. */
  readonly freedBytes: number
  /** The rules that the user lacks. Without them, some objects are not found. */
  readonly missingRules: readonly string[]
}

export interface FormatOptions {
  readonly nowMs: number
  readonly hasColors: boolean
}

const SHORT_KINDS: Readonly<Record<UnusedObject['kind'], string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  StorageClass: 'storageclass',
  VolumeAttributesClass: 'vac',
}

const FREED_COLUMN = 3

export function formatUnused({ items, freedBytes, missingRules }: UnusedReport, options: FormatOptions): string {
  const rules = missingRules.map((rule) => `  ${rule}\n`).join('')
  const rights = rules === '' ? '' : `\nTo find more, you need permission to:\n${rules}`
  if (items.length === 0)
    return `No object has been unused for as long as --older-than requires. Use --older-than 0s to list all unused objects.\n${rights}`
  const rows = items.map((item) => [
    `${SHORT_KINDS[item.kind]}/${item.name}`,
    item.namespace ?? '-',
    formatSince(item, options.nowMs),
    item.freedBytes === undefined ? 'unknown' : formatSize(item.freedBytes),
    item.message,
  ])
  const table = formatTable([['OBJECT', 'NAMESPACE', 'UNUSED FOR', 'FREES', 'WHY'], ...rows], {
    rightAligned: new Set([FREED_COLUMN]),
  })
  const commands = items.map(({ command, losesData }) => {
    const mark = losesData ? `  ${paint('# LOSES DATA', 'red', options.hasColors)}` : ''
    return `  ${command}${mark}\n`
  })
  return `${table}\nCommands that remove or explain them; removing all frees ${formatSize(freedBytes)}:\n${commands.join('')}${rights}`
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Returns `12d`, or `at most 12d` if the object may have been used after it was created. */
function formatSince({ since, isSinceKnown }: UnusedObject, nowMs: number): string {
  const ms = nowMs - Date.parse(since)
  const age =
    ms >= DAY_MS
      ? `${Math.floor(ms / DAY_MS)}d`
      : ms >= HOUR_MS
        ? `${Math.floor(ms / HOUR_MS)}h`
        : `${Math.floor(Math.max(0, ms) / MINUTE_MS)}m`
  return isSinceKnown ? age : `at most ${age}`
}
