// Formats a timeline as text: the steps with the time between them, then a line per entry. draw-timeline.ts uses the same texts
// for actors, entries and durations.
import type { TimelineEntry, TimelineStep } from '../../../api/kinds/timeline/timeline-schema.ts'
import { type ShownTimeline, shortRefOf } from './shown-timeline.ts'

export function formatTimeline(timeline: ShownTimeline): string {
  const { namespace, uid, source, notes, otherUids, steps, entries } = timeline
  const place = namespace ? ` in namespace ${namespace}` : ''
  const rows = entries.map((entry) => [
    formatTime(entry.time),
    entry.durationMs === undefined ? '' : formatDuration(entry.durationMs),
    actorOf(entry),
    describeEntry(entry),
  ])
  return [
    `${shortRefOf(timeline)}${place}${uid ? ` (uid ${uid})` : ''}`,
    ...(source === 'objects'
      ? [
          'Reconstructed from events, conditions and managed fields: times are those of the last write and have no fraction of a',
          'second, the order within a second is unknown, and attempts are missing.',
        ]
      : []),
    ...notes,
    ...(otherUids.length > 0 ? [`Other objects had this name; show them with --uid: ${otherUids.join(', ')}`] : []),
    ...(steps.length > 0 ? ['', formatSteps(steps, formatDurationOf(source))] : []),
    '',
    ...formatTable([['TIME', 'DURATION', 'WHO', 'WHAT'], ...rows]),
    '',
  ].join('\n')
}

/** Returns for example `Created → Provisioned +412ms → Bound +18ms (total 430ms)`. */
function formatSteps(steps: readonly TimelineStep[], format: (ms: number) => string): string {
  const times = steps.map(({ time }) => Date.parse(time))
  const texts = steps.map(({ name }, index) =>
    index === 0 ? name : `${name} +${format(times[index]! - times[index - 1]!)}`,
  )
  const total = times.length > 2 ? ` (total ${format(times.at(-1)! - times[0]!)})` : ''
  return `${texts.join(' → ')}${total}`
}

/** The last column is not padded. */
function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!))).join('  '),
  )
}

/** Returns the time in UTC, with milliseconds if it has a fraction, without the control characters that a server could send. */
const formatTime = (time: string): string => plain(time.slice(0, 23).replace('T', ' ').replace('Z', ''))

export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 120_000) return `${(ms / 1_000).toFixed(1)}s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)}m`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)}h`
  return `${Math.round(ms / 86_400_000)}d`
}

/** Returns the format of the times between steps. Those of a reconstructed timeline are differences of whole seconds. */
export const formatDurationOf =
  (source: ShownTimeline['source']) =>
  (ms: number): string => {
    if (source === 'journal' || ms >= 120_000) return formatDuration(ms)
    return ms < 1_000 ? '<1s' : `${Math.round(ms / 1_000)}s`
  }

/** Returns the user and the manager of a change, or the component of an attempt, a call or an event. */
export function actorOf({ user, manager, component }: TimelineEntry): string {
  if (component) return plain(component)
  const name = (user ?? '').replace(/^system:serviceaccount:([^:]*):/, '$1/')
  if (name && manager && name !== manager) return plain(`${name} (${manager})`)
  return plain(name || (manager ?? ''))
}

/** Results of attempts in the words of an operation's phase. Other results, such as a call's code, are shown as they are. */
const RESULT_TEXTS: Readonly<Record<string, string>> = { Stuck: 'Waiting', Retry: 'Failed' }

/** Returns one line with the action and its result. */
export function describeEntry({ type, object, action, changes = [], result, message }: TimelineEntry): string {
  const subject = object ? ` ${shortRefOf(object)}` : ''
  const outcome = result && type !== 'Event' ? ` → ${RESULT_TEXTS[result] ?? result}` : ''
  const details = changes.length > 0 ? changes.join(', ') : (message ?? '')
  return plain(`${action}${subject}${outcome}${details ? `: ${details}` : ''}`)
}

/** Replaces control characters, such as line breaks in the message of a driver, with spaces. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
const plain = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
