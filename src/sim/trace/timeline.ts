// Prints a run as a timeline: who did what when to the objects of the violation, the violation, and the objects at the end.
// Omits lines about other objects, and the middle of a long timeline, and marks the omission.
import { stringify } from 'yaml'
import type { SimulationRun, Violation } from '../engine/run.ts'
import type { Plan } from '../plan/plan.ts'
import { nameInTitle, type RelatedObjects, relatedObjects } from './related-objects.ts'
import { type LogLine, readLog, timeText } from './trace-lines.ts'

export interface TimelineOptions {
  /** Every line of the trace, also about other objects. */
  readonly all?: boolean
}

/** Longer timelines are not read: the start and the end are kept, and user actions and faults in between. */
const LINES_MAX = 60
const FIRST_LINES = 8
/** Up to so many steps, every user action is shown: a shrunk plan needs each of them. */
const STEPS_ALL_SHOWN = 10
const LAST_LINES = 24
const OBJECTS_MAX = 6
const OBJECT_LINES_MAX = 24
const OTHER_VIOLATIONS_MAX = 5

export function timelineOf(run: SimulationRun, { all = false }: TimelineOptions = {}): string {
  const [violation, ...others] = run.violations
  const things = violation && relatedObjects(run, violation)
  const log = readLog(run)
  const isSmall = run.plan.steps.length <= STEPS_ALL_SHOWN
  const isShown = (line: LogLine) =>
    line.mark === 'fault' || (isSmall && line.mark === 'user') || (things !== undefined && isAbout(things, line))
  const shown = all || !things ? log : log.filter(isShown)
  const story = once(shown)
  const lines = [...headOf(run.plan), '', ...(all ? story.map(lineText) : shortened(story, things))]
  if (shown.length < log.length)
    lines.push(`${log.length - shown.length} lines about other objects are omitted; --all shows them.`)
  if (!violation) return `${[...lines, '', 'No violation.'].join('\n')}\n`

  lines.push('', violationText(violation))
  for (const other of others.slice(0, OTHER_VIOLATIONS_MAX)) lines.push(violationText(other))
  if (others.length > OTHER_VIOLATIONS_MAX) lines.push(`… and ${others.length - OTHER_VIOLATIONS_MAX} more violations.`)
  return `${[...lines, ...objectsAtEnd(run, things!)].join('\n')}\n`
}

const isAbout = (things: RelatedObjects, { who, what }: LogLine): boolean => things.isIn(`${who} ${what}`)

export const violationText = ({ atMs, rule, text }: Violation): string =>
  `VIOLATION at ${timeText(atMs)}, rule "${rule}": ${text}`

function headOf({ seed, minutes, setup, faultRates, steps }: Plan): string[] {
  const {
    nodes,
    controlReplicas,
    driverControllers,
    commits,
    capacityReservation,
    expansionQuota,
    netExpandsWithoutNode,
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
    `Seed ${seed}: ${steps.length} steps in ${minutes} minutes; ${nodes} nodes, ${controlReplicas} × control, ` +
      `driver controllers ${driverControllers}, commits ${commits}, capacity reservation ${capacityReservation ? 'on' : 'off'}, ` +
      `quota by ${expansionQuota} size${netExpandsWithoutNode ? ', net.sim expands without its nodes' : ''}.`,
    `Fault rates: ${faults.join(', ') || 'none'}.`,
  ]
}

interface TimelineLine extends LogLine {
  /** How often the line occurs in a row. */
  readonly times: number
}

function once(lines: readonly LogLine[]): TimelineLine[] {
  const story: TimelineLine[] = []
  for (const line of lines) {
    const last = story.at(-1)
    if (last && last.who === line.who && last.what === line.what)
      story[story.length - 1] = { ...last, times: last.times + 1 }
    else story.push({ ...line, times: 1 })
  }
  return story
}

const MARKS = { user: '●', fault: '✗' } as const

function lineText({ atMs, who, what, mark, times }: TimelineLine): string {
  const shownWho = who === 'fault' ? '' : who
  const again = times > 1 ? ` (${times} times)` : ''
  return `${timeText(atMs).padStart(8)} ${mark ? MARKS[mark] : ' '} ${shownWho.padEnd(10)} ${what}${again}`
}

function shortened(story: readonly TimelineLine[], things: RelatedObjects | undefined): string[] {
  const kept = keptOf(story, things)
  const lines: string[] = []
  let skipped: TimelineLine[] = []
  const close = () => {
    if (skipped.length > 0)
      lines.push(
        `${' '.repeat(9)}… ${skipped.length} lines until ${timeText(skipped.at(-1)!.atMs)}: ${countsOf(skipped)}`,
      )
    skipped = []
  }
  for (const [index, line] of story.entries()) {
    if (!kept.has(index)) {
      skipped.push(line)
      continue
    }
    close()
    lines.push(lineText(line))
  }
  close()
  return lines
}

/** Each line kept from the middle may need a second one that says how many lines are omitted before it. */
function keptOf(story: readonly TimelineLine[], things: RelatedObjects | undefined): Set<number> {
  const all = [...story.keys()]
  if (all.length <= LINES_MAX) return new Set(all)
  const kept = new Set([...all.slice(0, FIRST_LINES), ...all.slice(-LAST_LINES)])
  const middle = all.slice(FIRST_LINES, -LAST_LINES).reverse() // the latest lines matter most
  const isShown = (line: TimelineLine) => things === undefined || isAbout(things, line)
  const ranks = [
    (line: TimelineLine) => line.mark === 'user' && isShown(line),
    (line: TimelineLine) => line.mark === 'fault' && isShown(line),
    (line: TimelineLine) => line.who === 'fault',
    (line: TimelineLine) => line.mark === undefined && isShown(line),
  ]
  let room = Math.floor((LINES_MAX - FIRST_LINES - LAST_LINES - 1) / 2)
  for (const isNext of ranks)
    for (const index of middle) {
      if (room === 0) return kept
      if (kept.has(index) || !isNext(story[index]!)) continue
      kept.add(index)
      room--
    }
  return kept
}

function countsOf(lines: readonly LogLine[]): string {
  const counts = new Map<string, number>()
  for (const { who } of lines) counts.set(who, (counts.get(who) ?? 0) + 1)
  const most = [...counts].sort(([, a], [, b]) => b - a)
  const shown = most.slice(0, 4).map(([who, count]) => `${count} ${who}`)
  return [...shown, ...(most.length > 4 ? [`${most.length - 4} others`] : [])].join(', ')
}

function objectsAtEnd({ objects = {} }: SimulationRun, { names }: RelatedObjects): string[] {
  const named = Object.entries(objects).filter(([title]) => names.has(nameInTitle(title)))
  if (named.length === 0) return []
  const shown = named.slice(0, OBJECTS_MAX).flatMap(([title, object]) => [`  ${title}`, ...yamlOf(object)])
  const more = named.length > OBJECTS_MAX ? [`  … and ${named.length - OBJECTS_MAX} more objects.`] : []
  return ['', 'Objects at the end:', ...shown, ...more]
}

const NOISE = new Set(['managedFields', 'apiVersion', 'kind', 'generation'])

function yamlOf(object: object): string[] {
  const plain = JSON.parse(JSON.stringify(object, (key, value) => (NOISE.has(key) ? undefined : value)))
  const lines = stringify(plain, { lineWidth: 110, flowCollectionPadding: false }).trimEnd().split('\n')
  const shown = lines.slice(0, OBJECT_LINES_MAX)
  const more = lines.length - shown.length
  return [...shown, ...(more > 0 ? [`… ${more} more lines`] : [])].map((line) => `    ${line}`)
}
