// Formats a run as a timeline: the trace lines about the objects of the first violation, the violations, and the objects at the
// end. Omits lines about other objects and the middle of a long timeline, and marks the omissions.

import { stringify } from 'yaml'
import type { SimulationRun, Violation } from '../engine/run-plan.ts'
import type { Plan } from '../plan/plan.ts'
import { pluralize } from './pluralize.ts'
import { findRelatedObjects, nameInTitle, type RelatedObjects } from './related-objects.ts'
import { formatTime, readTrace, type TraceLine } from './trace-lines.ts'

export interface TimelineOptions {
  /** Whether to print every line of the trace, including lines about unrelated objects. */
  readonly all?: boolean
}

/** A longer timeline is shortened to its first and last lines and the most relevant lines in between. */
const LINES_MAX = 60
const FIRST_LINES = 8
/** If the plan has at most this many steps, every user action is shown: a shrunk plan needs each one. */
const SMALL_PLAN_STEPS_MAX = 10
const LAST_LINES = 24
const OBJECTS_MAX = 6
const OBJECT_LINES_MAX = 24
const OTHER_VIOLATIONS_MAX = 5

export function formatTimeline(run: SimulationRun, { all = false }: TimelineOptions = {}): string {
  const [violation, ...otherViolations] = run.violations
  const relatedObjects = violation && findRelatedObjects(run, violation)
  const trace = readTrace(run)
  const isSmall = run.plan.steps.length <= SMALL_PLAN_STEPS_MAX
  const isShown = (line: TraceLine) =>
    line.mark === 'fault' ||
    (isSmall && line.mark === 'user') ||
    (relatedObjects !== undefined && isAbout(relatedObjects, line))
  const shownLines = all || !relatedObjects ? trace : trace.filter(isShown)
  const timeline = mergeRepeatedLines(shownLines)
  const lines = [...formatHeader(run.plan), '', ...(all ? timeline.map(formatLine) : shorten(timeline, relatedObjects))]
  if (shownLines.length < trace.length)
    lines.push(`Omitted lines about other objects: ${trace.length - shownLines.length}; --all shows them.`)
  if (!violation) return `${[...lines, '', 'No violation.'].join('\n')}\n`

  lines.push('', formatViolation(violation))
  for (const other of otherViolations.slice(0, OTHER_VIOLATIONS_MAX)) lines.push(formatViolation(other))
  if (otherViolations.length > OTHER_VIOLATIONS_MAX)
    lines.push(`… and ${otherViolations.length - OTHER_VIOLATIONS_MAX} more violations.`)
  return `${[...lines, ...formatFinalObjects(run, relatedObjects!)].join('\n')}\n`
}

const isAbout = (related: RelatedObjects, { source, text }: TraceLine): boolean =>
  related.isMentionedIn(`${source} ${text}`)

const formatViolation = ({ atMs, rule, text }: Violation): string =>
  `VIOLATION at ${formatTime(atMs)}, rule "${rule}": ${text}`

function formatHeader({ seed, minutes, setup, faultRates, steps }: Plan): string[] {
  const {
    nodes,
    controlReplicas,
    driverControllers,
    commits,
    answers,
    capacityReservation,
    expansionQuota,
    netExpandsWithoutNode,
    identities,
  } = setup
  const faults = [
    ...Object.entries(faultRates.network).map(([name, rate]) => `network ${name} ${rate}`),
    ...(faultRates.diskErrors > 0 ? [`disk errors ${faultRates.diskErrors}`] : []),
    ...Object.entries(faultRates.drivers).map(
      ([name, rates]) => `${name} ${JSON.stringify(rates).replaceAll('"', '')}`,
    ),
    ...Object.entries(faultRates.crashes).map(([name, rate]) => `${name} crashes ${rate}`),
  ]
  return [
    `Seed ${seed}: ${pluralize(steps.length, 'step')} in ${pluralize(minutes, 'minute')}; ${pluralize(nodes, 'node')}, ${controlReplicas} × control, ` +
      `driver controllers ${driverControllers}, commits ${commits}, ${answers ? `answers as ${answers}, ` : ''}${identities ? 'agents as their nodes, ' : ''}capacity reservation ${capacityReservation ? 'on' : 'off'}, ` +
      `quota by ${expansionQuota} size${netExpandsWithoutNode ? ', net.sim expands without its nodes' : ''}.`,
    `Fault rates: ${faults.join(', ') || 'none'}.`,
  ]
}

interface TimelineLine extends TraceLine {
  /** Number of consecutive occurrences. */
  readonly times: number
}

function mergeRepeatedLines(lines: readonly TraceLine[]): TimelineLine[] {
  const timeline: TimelineLine[] = []
  for (const line of lines) {
    const lastLine = timeline.at(-1)
    if (lastLine && lastLine.source === line.source && lastLine.text === line.text)
      timeline[timeline.length - 1] = { ...lastLine, times: lastLine.times + 1 }
    else timeline.push({ ...line, times: 1 })
  }
  return timeline
}

const MARKS = { user: '●', fault: '✗' } as const

function formatLine({ atMs, source, text, mark, times }: TimelineLine): string {
  const shownSource = source === 'fault' ? '' : source
  const repetitions = times > 1 ? ` (${times} times)` : ''
  return `${formatTime(atMs).padStart(8)} ${mark ? MARKS[mark] : ' '} ${shownSource.padEnd(10)} ${text}${repetitions}`
}

function shorten(timeline: readonly TimelineLine[], related: RelatedObjects | undefined): string[] {
  const selectedIndexes = selectLines(timeline, related)
  const lines: string[] = []
  let skippedLines: TimelineLine[] = []
  const addOmission = () => {
    if (skippedLines.length > 0)
      lines.push(
        `${' '.repeat(9)}… ${skippedLines.length} lines until ${formatTime(skippedLines.at(-1)!.atMs)}: ${formatCounts(skippedLines)}`,
      )
    skippedLines = []
  }
  for (const [index, line] of timeline.entries()) {
    if (!selectedIndexes.has(index)) {
      skippedLines.push(line)
      continue
    }
    addOmission()
    lines.push(formatLine(line))
  }
  addOmission()
  return lines
}

/** Returns the indexes of the lines to print. A line from the middle counts twice: a line about omissions may precede it. */
function selectLines(timeline: readonly TimelineLine[], related: RelatedObjects | undefined): Set<number> {
  const indexes = [...timeline.keys()]
  if (indexes.length <= LINES_MAX) return new Set(indexes)
  const selectedIndexes = new Set([...indexes.slice(0, FIRST_LINES), ...indexes.slice(-LAST_LINES)])
  const middle = indexes.slice(FIRST_LINES, -LAST_LINES).reverse() // the latest lines matter most
  const isRelated = (line: TimelineLine) => related === undefined || isAbout(related, line)
  const ranks = [
    (line: TimelineLine) => line.mark === 'user' && isRelated(line),
    (line: TimelineLine) => line.mark === 'fault' && isRelated(line),
    (line: TimelineLine) => line.source === 'fault',
    (line: TimelineLine) => line.mark === undefined && isRelated(line),
  ]
  let remainingLines = Math.floor((LINES_MAX - FIRST_LINES - LAST_LINES - 1) / 2)
  for (const isNext of ranks)
    for (const index of middle) {
      if (remainingLines === 0) return selectedIndexes
      if (selectedIndexes.has(index) || !isNext(timeline[index]!)) continue
      selectedIndexes.add(index)
      remainingLines--
    }
  return selectedIndexes
}

function formatCounts(lines: readonly TraceLine[]): string {
  const counts = new Map<string, number>()
  for (const { source } of lines) counts.set(source, (counts.get(source) ?? 0) + 1)
  const sortedCounts = [...counts].sort(([, a], [, b]) => b - a)
  const largestCounts = sortedCounts.slice(0, 4).map(([source, count]) => `${count} ${source}`)
  return [...largestCounts, ...(sortedCounts.length > 4 ? [`${sortedCounts.length - 4} others`] : [])].join(', ')
}

function formatFinalObjects({ objects = {} }: SimulationRun, { names }: RelatedObjects): string[] {
  const namedObjects = Object.entries(objects).filter(([title]) => names.has(nameInTitle(title)))
  if (namedObjects.length === 0) return []
  const shownObjects = namedObjects
    .slice(0, OBJECTS_MAX)
    .flatMap(([title, object]) => [`  ${title}`, ...formatYaml(object)])
  const omission =
    namedObjects.length > OBJECTS_MAX ? [`  … and ${namedObjects.length - OBJECTS_MAX} more objects.`] : []
  return ['', 'Objects at the end:', ...shownObjects, ...omission]
}

const OMITTED_FIELDS = new Set(['managedFields', 'apiVersion', 'kind', 'generation'])

function formatYaml(object: object): string[] {
  const plain = JSON.parse(JSON.stringify(object, (key, value) => (OMITTED_FIELDS.has(key) ? undefined : value)))
  const lines = stringify(plain, { lineWidth: 110, flowCollectionPadding: false }).trimEnd().split('\n')
  const shownLines = lines.slice(0, OBJECT_LINES_MAX)
  const omittedCount = lines.length - shownLines.length
  return [...shownLines, ...(omittedCount > 0 ? [`… ${omittedCount} more lines`] : [])].map((line) => `    ${line}`)
}
