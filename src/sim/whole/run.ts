// Runs a plan: people act and things break as it says, then all faults end, and once it is quiet everything is judged.
import type { Client } from '../../client/index.ts'
import { createWorld, type World } from '../world.ts'
import { createCheckers } from './checkers/index.ts'
import { createFaults } from './faults.ts'
import { createFirstObjects } from './opening.ts'
import { createPeople } from './people.ts'
import { type Act, isFault, type PeopleAct, type Plan } from './plan.ts'
import { textOfAct } from './plan-text.ts'
import { createStage, type Stage } from './stage.ts'
import { createView } from './view.ts'
import { whatIsThere } from './what-is-there.ts'

export interface WholeRun {
  readonly plan: Plan
  /** What the checkers found, first things first. Empty: all is well. */
  readonly violations: readonly Violation[]
  /** Everything noted, in order; two runs of one plan agree on every line. */
  readonly log: readonly string[]
  /** What is there at the end if anything is wrong, by title: `claim team-a/c1`, `net.sim volume …`. */
  readonly objects?: Readonly<Record<string, object>>
  readonly fingerprint: number
  readonly virtualMs: number
  /** `create claim: done` 12, `edit claim (grow): refused 422` 1 … */
  readonly operations: Readonly<Record<string, number>>
  /** Faults that happened, planned ones and those of the weather, by kind: `crash`, `reply lost`, `driver ABORTED` … */
  readonly faults: Readonly<Record<string, number>>
}

export interface Violation {
  readonly atMs: number
  /** Which rule, as a few stable words: `leak`, `two claims`, `quota`, `shrunk` … Shrinking keeps this. */
  readonly rule: string
  readonly text: string
}

const MINUTE_MS = 60_000
/** More lines than a run of an hour has. */
const LINES_MAX = 200_000
const VIOLATIONS_MAX = 30 // the first ones tell the story
const LOOK_MS = 10_000
/** Problems that have not changed for this long stay: no retry is further away. */
const STILL_MS = 12 * MINUTE_MS
/** Whoever tries for ever tries several times in it. */
const REST_MS = 11 * MINUTE_MS
const HEAL_MS_MAX = 60 * MINUTE_MS
/** What was asked for last has begun by then. */
const LAST_ACTS_MS = 10_000
const ANSWER_MS_MAX = MINUTE_MS

export async function runPlan(plan: Plan): Promise<WholeRun> {
  const world = createWorld(plan.seed, { linesMax: LINES_MAX })
  const violations: Violation[] = []
  const convict = (rule: string, text: string): void => {
    world.note(`CHECK ${rule}: ${text}`)
    if (violations.length < VIOLATIONS_MAX) violations.push({ atMs: world.nowMs, rule, text })
  }
  const unexpected = (error: unknown): void => convict('crash', (error as Error)?.stack ?? String(error))
  process.on('unhandledRejection', unexpected)
  try {
    return await run(plan, world, convict, violations)
  } finally {
    process.off('unhandledRejection', unexpected)
  }
}

async function run(
  plan: Plan,
  world: World,
  convict: (rule: string, text: string) => void,
  violations: readonly Violation[],
): Promise<WholeRun> {
  let around = (_process: string, client: Client): Client => client
  const stage = await createStage(world, plan.setup, { aroundClient: (process, client) => around(process, client) })
  const { cluster } = stage
  const view = createView(cluster)
  await answer(stage, createFirstObjects)
  const faults = createFaults(stage)
  const people = createPeople({ stage, view, note: world.note })
  const checkers = createCheckers({ stage, view, people, convict })
  around = checkers.aroundClient
  const operations: Record<string, number> = {}
  stage.onEnd((process, error) => {
    if (error !== undefined && isNormalEnd(error)) return
    convict('ended', `${process} ended by itself: ${(error as Error)?.stack ?? 'without an error'}`)
  })

  stage.open()
  faults.begin(plan.weather)
  const startMs = world.nowMs
  for (const { atMs, act } of plan.steps) world.schedule(atMs, () => perform(act))
  await world.runFor(plan.minutes * MINUTE_MS)

  faults.end()
  await stage.heal()
  faults.takeBack()
  await world.runFor(LAST_ACTS_MS)
  await settle()
  checkers.listen()
  if (violations.length === 0) await world.runFor(REST_MS)
  await checkers.atEnd()
  const left = {
    plan,
    violations: [...violations],
    log: [...world.trace()],
    ...(violations.length > 0 ? { objects: whatIsThere(view, stage.drivers) } : {}),
    fingerprint: world.fingerprint,
    virtualMs: world.nowMs - startMs,
    operations,
    faults: world.tallies,
  }
  stage.close()
  await world.runFor(0) // what the end of its signals set free says nothing more
  return left

  function perform(act: Act): void {
    world.note(`${isFault(act) ? 'fault' : 'people'}: ${textOfAct(act)}`)
    if (isFault(act)) faults.strike(act)
    else ask(act)
  }

  function ask(act: PeopleAct): void {
    const what = nameOf(act)
    const count = (outcome: string) => {
      const key = `${what}: ${outcome}`
      operations[key] = (operations[key] ?? 0) + 1
    }
    count('asked')
    people.perform(act).then(
      (outcome) => {
        count(outcome)
        world.note(`people: ${textOfAct(act)}: ${outcome}`)
        if (outcome.startsWith('BUG')) convict('server', `${textOfAct(act)} was answered ${outcome}`)
      },
      (error: unknown) => convict('server', `${textOfAct(act)} failed: ${(error as Error).stack}`),
    )
  }

  /** Until all is well; or until what is wrong stays wrong. */
  async function settle(): Promise<void> {
    const untilMs = world.nowMs + HEAL_MS_MAX
    let sinceMs = world.nowMs
    let known = ''
    for (;;) {
      const problems = checkers.problems()
      const text = problems.map((problem) => problem.text).join('\n')
      if (text !== known) {
        known = text
        sinceMs = world.nowMs
      }
      const isOver = world.nowMs - sinceMs > STILL_MS || world.nowMs > untilMs
      if (problems.length === 0 || isOver) {
        for (const { rule, text: what } of problems) convict(rule, what)
        return
      }
      await world.runFor(LOOK_MS)
    }
  }
}

function nameOf(act: PeopleAct): string {
  switch (act.do) {
    case 'create':
    case 'delete':
      return `${act.do} ${act.kind}`
    case 'edit':
      return `edit ${act.kind} (${act.why})`
    default:
      return act.do
  }
}

/** An agent gives up when somebody else has its node's name, and a sidecar when its driver is not there. */
const isNormalEnd = (error: unknown): boolean => ['NodeNameTakenError', 'CsiError'].includes((error as Error)?.name)

/** What the server says to requests past the network, before anything breaks. */
async function answer(stage: Stage, ask: (client: Client) => Promise<unknown>): Promise<void> {
  let isDone = false
  let failure: unknown
  ask(stage.cluster.direct()!).then(
    () => {
      isDone = true
    },
    (error: unknown) => {
      failure = error
    },
  )
  const isOver = () => isDone || failure !== undefined
  await stage.cluster.world.runUntil(isOver, { withinMs: ANSWER_MS_MAX, waitingFor: 'the first objects' })
  if (failure !== undefined) throw failure
}
