// Runs a plan: users act and faults occur as planned, then all faults end, and once the system is at rest the checkers
// verify the whole state. Returns the violations and the trace.
import type { Client } from '../../client/index.ts'
import { createCheckers } from '../checkers/index.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { createSimulation, type Simulation } from '../environment/simulation.ts'
import { type Action, isFault, type Plan, type UserAction } from '../plan/plan.ts'
import { describeAction } from '../plan/plan-text.ts'
import { createAtRestSteps } from './at-rest-steps.ts'
import { createFaultInjector } from './fault-injector.ts'
import { collectFinalState } from './final-state.ts'
import { createInitialObjects } from './initial-objects.ts'
import { createSystem, type SystemOptions } from './system.ts'
import { createUsers } from './users.ts'
import { createView } from './view.ts'

export interface SimulationRun {
  readonly plan: Plan
  /** In the order in which the checkers found them. */
  readonly violations: readonly Violation[]
  /** The last lines of the trace. Two runs of one plan agree on every line. */
  readonly trace: readonly string[]
  /** The objects at the end of a run with violations, by title: `claim team-a/c1`, `net.sim volume …`. */
  readonly objects?: Readonly<Record<string, object>>
  readonly fingerprint: number
  readonly virtualMs: number
  /** `create claim: done` 12, `edit claim (grow): refused 422` 1 … */
  readonly operations: Readonly<Record<string, number>>
  /** Faults that occurred, planned and random, by kind: `crash`, `reply lost`, `driver ABORTED` … */
  readonly faults: Readonly<Record<string, number>>
}

export interface Violation {
  readonly atMs: number
  /** A short stable name: `leak`, `double binding`, `quota` … Shrinking keeps violations of the same rule. */
  readonly rule: string
  readonly text: string
}

const MINUTE_MS = 60_000
/** How many lines of the trace are retained. */
const LINES_MAX = 200_000
/** Later violations mostly follow from the first ones. */
const VIOLATIONS_MAX = 30
const POLL_INTERVAL_MS = 10_000
/** Problems that have not changed for this long are final. */
const UNCHANGED_MS = 12 * MINUTE_MS
/** Long enough for an endless retry to be repeated several times. */
const REST_MS = 11 * MINUTE_MS
/** Problems that keep changing are final after this time. */
const SETTLE_MS_MAX = 60 * MINUTE_MS
/** Within this time the last user actions complete. */
const LAST_ACTIONS_MS = 10_000

/** Wrappers that plant a bug: planted-bugs.test.ts shows that the checkers find it. */
export type PlantedBug = Pick<SystemOptions, 'wrapDriver' | 'wrapServer' | 'wrapOperations'>

export async function runPlan(plan: Plan, plantedBug: PlantedBug = {}): Promise<SimulationRun> {
  const simulation = createSimulation(plan.seed, { linesMax: LINES_MAX })
  const violations: Violation[] = []
  const report = (rule: string, text: string): void => {
    simulation.note(`CHECK ${rule}: ${text}`)
    if (violations.length < VIOLATIONS_MAX) violations.push({ atMs: simulation.nowMs, rule, text })
  }
  const reportCrash = (error: unknown): void => report('crash', (error as Error)?.stack ?? String(error))
  process.on('unhandledRejection', reportCrash)
  try {
    return await runSimulation(plan, simulation, { report, violations, plantedBug })
  } finally {
    process.off('unhandledRejection', reportCrash)
  }
}

interface RunOptions {
  readonly report: (rule: string, text: string) => void
  readonly violations: readonly Violation[]
  readonly plantedBug: PlantedBug
}

async function runSimulation(
  plan: Plan,
  simulation: Simulation,
  { report, violations, plantedBug }: RunOptions,
): Promise<SimulationRun> {
  let wrapClient = (_process: string, client: Client): Client => client
  const system = await createSystem(simulation, plan.setup, {
    ...plantedBug,
    wrapClient: (process, client) => wrapClient(process, client),
  })
  const { cluster } = system
  const view = createView(cluster)
  await runUntilSettled(simulation, createInitialObjects(cluster.directClient()!, plan.setup), 'the initial objects')
  const faults = createFaultInjector(system)
  const users = createUsers({ system, view, note: simulation.note })
  const checkers = createCheckers({ system, view, users, report })
  wrapClient = checkers.wrapClient
  const operations: Record<string, number> = {}
  system.onEnd((process, error) => {
    if (error !== undefined && isNormalEnd(error)) return
    report('process ended', `${process} ended by itself: ${(error as Error)?.stack ?? 'without an error'}`)
  })

  system.start()
  faults.setRates(plan.faultRates)
  const startMs = simulation.nowMs
  for (const { atMs, action } of plan.steps) simulation.schedule(atMs, () => performAction(action))
  await simulation.runFor(plan.minutes * MINUTE_MS)

  faults.stop()
  await system.heal()
  faults.correctTaints()
  await simulation.runFor(LAST_ACTIONS_MS)
  await settle()
  checkers.watchRetries()
  if (violations.length === 0) await simulation.runFor(REST_MS)
  if (violations.length === 0 && plan.atRest) {
    const steps = createAtRestSteps({ system, view, users, report })
    for (const step of plan.atRest) {
      simulation.note(`at rest: ${step}`)
      await steps[step]()
      await settle()
    }
  }
  await checkers.checkEnd()
  const result = {
    plan,
    violations: [...violations],
    trace: [...simulation.trace()],
    ...(violations.length > 0 ? { objects: collectFinalState(view, system.drivers) } : {}),
    fingerprint: simulation.fingerprint,
    virtualMs: simulation.nowMs - startMs,
    operations,
    faults: simulation.tallies,
  }
  system.dispose()
  await simulation.runFor(0) // lets aborted work settle; nothing more is recorded
  return result

  function performAction(action: Action): void {
    simulation.note(`${isFault(action) ? 'fault' : 'user'}: ${describeAction(action)}`)
    if (isFault(action)) faults.inject(action)
    else performUserAction(action)
  }

  function performUserAction(action: UserAction): void {
    const operation = operationName(action)
    const count = (outcome: string) => {
      const key = `${operation}: ${outcome}`
      operations[key] = (operations[key] ?? 0) + 1
    }
    count('sent')
    users.perform(action).then(
      (outcome) => {
        count(outcome)
        simulation.note(`user: ${describeAction(action)}: ${outcome}`)
        if (outcome.startsWith('BUG')) report('server', `${describeAction(action)} had the outcome ${outcome}`)
      },
      (error: unknown) => report('server', `${describeAction(action)} failed: ${(error as Error).stack}`),
    )
  }

  /**
   * Waits until no checker finds a problem. Reports problems that stay the same for UNCHANGED_MS or remain after SETTLE_MS_MAX.
   */
  async function settle(): Promise<void> {
    const untilMs = simulation.nowMs + SETTLE_MS_MAX
    let sinceMs = simulation.nowMs
    let previousText = ''
    for (;;) {
      const problems = checkers.problems()
      const text = problems.map((problem) => problem.text).join('\n')
      if (text !== previousText) {
        previousText = text
        sinceMs = simulation.nowMs
      }
      const isOver = simulation.nowMs - sinceMs > UNCHANGED_MS || simulation.nowMs > untilMs
      if (problems.length === 0 || isOver) {
        for (const problem of problems) report(problem.rule, problem.text)
        return
      }
      await simulation.runFor(POLL_INTERVAL_MS)
    }
  }
}

function operationName(action: UserAction): string {
  switch (action.do) {
    case 'create':
    case 'create together':
    case 'delete':
      return `${action.do} ${action.kind}`
    case 'edit':
      return `edit ${action.kind} (${action.purpose})`
    default:
      return action.do
  }
}

/** An agent ends if another has its node's name, and a sidecar if its driver does not respond. */
const isNormalEnd = (error: unknown): boolean => ['NodeNameTakenError', 'CsiError'].includes((error as Error)?.name)
