// Tells a run as a story that a person can follow: what the violation is about, who did what when, and what is there in
// the end. Lines about other things are left out, and of very many the middle; the story says so.
import { stringify } from 'yaml'
import type { SimulationRun, Violation } from '../engine/run.ts'
import type { Plan } from '../plan/plan.ts'
import { nameInTitle, type RelatedObjects, relatedObjects } from './related-objects.ts'
import { type LogLine, readLog, timeText } from './trace-lines.ts'

export interface TimelineOptions {
  /** Every line of the log, also about other things. */
  readonly all?: boolean
}

/** More are not read; the beginning and the end stay, and from between what users did and what broke. */
const STORY_LINES_MAX = 60
const FIRST_LINES = 8
/** Of a plan with no more steps, whatever users do is told: each step is needed. */
const STEPS_ALL_TOLD = 10
const LAST_LINES = 24
const OBJECTS_MAX = 6
const OBJECT_LINES_MAX = 24
const OTHER_VIOLATIONS_MAX = 5

export function timelineOf(run: SimulationRun, { all = false }: TimelineOptions = {}): string {
  const [violation, ...others] = run.violations
  const things = violation && relatedObjects(run, violation)
  const log = readLog(run)
  const isSmall = run.plan.steps.length <= STEPS_ALL_TOLD
  const isTold = (line: LogLine) =>
    line.mark === 'fault' || (isSmall && line.mark === 'user') || (things !== undefined && isAbout(things, line))
  const told = all || !things ? log : log.filter(isTold)
  const story = once(told)
  const lines = [...headOf(run.plan), '', ...(all ? story.map(lineText) : shortened(story, things))]
  if (told.length < log.length)
    lines.push(`${log.length - told.length} lines about other things are left out; --all shows them.`)
  if (!violation) return `${[...lines, '', 'No violation.'].join('\n')}\n`

  lines.push('', violationText(violation))
  for (const other of others.slice(0, OTHER_VIOLATIONS_MAX)) lines.push(violationText(other))
  if (others.length > OTHER_VIOLATIONS_MAX) lines.push(`… and ${others.length - OTHER_VIOLATIONS_MAX} more violations.`)
  return `${[...lines, ...finalState(run, things!)].join('\n')}\n`
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
    ...(faultRates.diskErrors > 0 ? [`disk refuses ${faultRates.diskErrors}`] : []),
    ...Object.entries(faultRates.drivers).map(
      ([name, rates]) => `${name} ${JSON.stringify(rates).replaceAll('"', '')}`,
    ),
    ...Object.entries(faultRates.crashes).map(([name, rate]) => `${name} crashes ${rate}`),
  ]
  return [
    `Seed ${seed}: ${steps.length} steps in ${minutes} minutes; ${nodes} nodes, ${controlReplicas} × control, ` +
      `controllers of drivers ${driverControllers}, commits ${commits}, capacity reservation ${capacityReservation ? 'on' : 'off'}, ` +
      `quota by ${expansionQuota} size${netExpandsWithoutNode ? ', net.sim grows without its nodes' : ''}.`,
    `FaultRates: ${faults.join(', ') || 'clear'}.`,
  ]
}

interface StoryLine extends LogLine {
  /** How often it was noted in a row. */
  readonly times: number
}

function once(lines: readonly LogLine[]): StoryLine[] {
  const story: StoryLine[] = []
  for (const line of lines) {
    const last = story.at(-1)
    if (last && last.who === line.who && last.what === line.what)
      story[story.length - 1] = { ...last, times: last.times + 1 }
    else story.push({ ...line, times: 1 })
  }
  return story
}

const MARKS = { user: '●', fault: '✗' } as const

function lineText({ atMs, who, what, mark, times }: StoryLine): string {
  const shownWho = who === 'fault' ? '' : who
  const again = times > 1 ? ` (${times} times)` : ''
  return `${timeText(atMs).padStart(8)} ${mark ? MARKS[mark] : ' '} ${shownWho.padEnd(10)} ${what}${again}`
}

function shortened(story: readonly StoryLine[], things: RelatedObjects | undefined): string[] {
  const kept = keptOf(story, things)
  const lines: string[] = []
  let skipped: StoryLine[] = []
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

/** Each line kept from the middle may need a second one that says what is left out before it. */
function keptOf(story: readonly StoryLine[], things: RelatedObjects | undefined): Set<number> {
  const all = [...story.keys()]
  if (all.length <= STORY_LINES_MAX) return new Set(all)
  const kept = new Set([...all.slice(0, FIRST_LINES), ...all.slice(-LAST_LINES)])
  const middle = all.slice(FIRST_LINES, -LAST_LINES).reverse() // what happened last matters most
  const isTold = (line: StoryLine) => things === undefined || isAbout(things, line)
  const ranks = [
    (line: StoryLine) => line.mark === 'user' && isTold(line),
    (line: StoryLine) => line.mark === 'fault' && isTold(line),
    (line: StoryLine) => line.who === 'fault',
    (line: StoryLine) => line.mark === undefined && isTold(line),
  ]
  let room = Math.floor((STORY_LINES_MAX - FIRST_LINES - LAST_LINES - 1) / 2)
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

function finalState({ objects = {} }: SimulationRun, { names }: RelatedObjects): string[] {
  const named = Object.entries(objects).filter(([title]) => names.has(nameInTitle(title)))
  if (named.length === 0) return []
  const shown = named.slice(0, OBJECTS_MAX).flatMap(([title, object]) => [`  ${title}`, ...yamlOf(object)])
  const more = named.length > OBJECTS_MAX ? [`  … and ${named.length - OBJECTS_MAX} more objects.`] : []
  return ['', 'What is there:', ...shown, ...more]
}

const NOISE = new Set(['managedFields', 'apiVersion', 'kind', 'generation'])

function yamlOf(object: object): string[] {
  const plain = JSON.parse(JSON.stringify(object, (key, value) => (NOISE.has(key) ? undefined : value)))
  const lines = stringify(plain, { lineWidth: 110, flowCollectionPadding: false }).trimEnd().split('\n')
  const shown = lines.slice(0, OBJECT_LINES_MAX)
  const more = lines.length - shown.length
  return [...shown, ...(more > 0 ? [`… ${more} more lines`] : [])].map((line) => `    ${line}`)
}
