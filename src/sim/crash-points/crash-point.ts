// Runs a few production controllers in a system with one crash: right before or right after one effect
// (effects.ts) one process crashes and restarts 3 s later. The final state must be the same as without a crash, and no
// checker may find a violation. enumerate-crash-points.ts runs every crash point of a scenario.
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import type { Client } from '../../client/index.ts'
import type { FakeSettings } from '../../csi/fake/index.ts'
import { type Checkers, createCheckers } from '../checkers/index.ts'
import { createProcessHost, type ProcessHost } from '../engine/process-host.ts'
import { createSystem, type System } from '../engine/system.ts'
import { createView, type ObjectOf, type View } from '../engine/view.ts'
import type { SimDriver } from '../environment/driver.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { createSimulation, type Simulation } from '../environment/simulation.ts'
import { NAMESPACES } from '../plan/catalog.ts'
import type { Setup } from '../plan/plan.ts'
import { createEffects, type Effect, type Effects } from './effects.ts'

/** The process that crashes. `process` is the process that causes the effect. */
export const TARGETS = ['process', 'server', 'driver'] as const
export const MODES = ['transactions', 'one by one'] as const
export type Mode = (typeof MODES)[number]
export const DRIVER = 'net.sim'
/** The namespace of all objects of the scenarios. */
export const [NAMESPACE] = NAMESPACES

export interface CrashPoint {
  /** Number of the effect, from 1. */
  readonly effect: number
  readonly when: 'before' | 'after'
  readonly target: (typeof TARGETS)[number]
}

export interface Crash {
  readonly at: CrashPoint
  /** The final state without a crash. */
  readonly expected: string
}

export interface CrashRun {
  /** Descriptions of all effects, in order. */
  readonly effects: readonly string[]
  /** The final state, without values that differ from run to run. */
  readonly end: string
  readonly steps: number
}

export interface CrashSystemOptions {
  readonly seed: number
  readonly mode: Mode
  readonly at: CrashPoint | undefined
  readonly driverSettings: FakeSettings
  /** Creates the objects that exist at the start. */
  prepare(client: Client, driver: SimDriver): Promise<void>
  addProcesses(host: ProcessHost, system: CrashSystem): void
}

export interface CrashSystem {
  readonly simulation: Simulation
  readonly system: System
  readonly driver: SimDriver
  readonly view: View
  readonly checkers: Checkers
  readonly effects: Effects
  /** Returns the claim of this name in NAMESPACE. */
  claim(name: string): ObjectOf<'claim'> | undefined
  report(rule: string, text: string): void
  /** Throws if there was a violation, with the crash point and the end of the trace. */
  throwIfViolated(): void
}

const DOWNTIME_MS = 3_000
/** The expected state must last this long. */
const STABLE_MS = 10_000
/** The interval at which a user checks whether the next step is due. */
export const POLL_INTERVAL_MS = 50
const TRACE_LINES = Number(process.env.SIM_TRACE_LINES ?? 120)

const SETUP: Setup = {
  nodes: 0,
  controlReplicas: 1,
  driverControllers: 'sidecars',
  commits: 'atomic',
  capacityReservation: false,
  expansionQuota: 'actual',
  netExpandsWithoutNode: false,
}

export const formatCrashPoint = (mode: Mode, { effect, when, target }: CrashPoint): string =>
  `${mode}, ${effect} ${when} ${target}`

export async function createCrashSystem(options: CrashSystemOptions): Promise<CrashSystem> {
  const { seed, mode, at } = options
  const simulation = createSimulation(seed)
  const violations: string[] = []
  const report = (rule: string, text: string): void => {
    simulation.note(`CHECK ${rule}: ${text}`)
    violations.push(`${(simulation.nowMs / 1_000).toFixed(3)}s ${rule}: ${text}`)
  }
  const isCrashPoint = ({ number }: Effect, when: CrashPoint['when']): boolean =>
    at?.effect === number && at.when === when
  const effects = createEffects(
    {
      before: (effect) => isCrashPoint(effect, 'before') && void crash(effect),
      after: (effect) => (isCrashPoint(effect, 'after') ? crash(effect) : 'response arrives'),
    },
    ({ number, process, description }) => simulation.note(`${number} ${process}: ${description}`),
  )
  let wrapClient = (_process: string, client: Client): Client => client
  const setup: Setup = { ...SETUP, commits: mode === 'transactions' ? 'atomic' : 'one by one' }
  const system = await createSystem(simulation, setup, {
    wrapClient: (process, client) => wrapClient(process, client),
    wrapNetworkClient: (env, client) => effects.clientOf(env, client),
    wrapDriver: (env, csi) => effects.driverOf(env, csi),
    driverSettings: { [DRIVER]: options.driverSettings },
    addProcesses(deps) {
      const host = createProcessHost(deps)
      options.addProcesses(host, result)
      return host
    },
  })
  const { cluster } = system
  const driver = system.drivers.get(DRIVER)!
  const view = createView(cluster)
  const checkers = createCheckers({
    system,
    view,
    users: { acknowledgedWrites: [] },
    hasObserver: false,
    hasOperations: false, // single controllers run here, without the registry that a process gives them
    report,
  })
  wrapClient = checkers.wrapClient
  system.onEnd((process, error) =>
    report('process ended', `${process}: ${(error as Error)?.stack ?? 'without an error'}`),
  )

  /** Crashes a process. A response that it had not sent yet is lost. */
  function crash(effect: Effect): 'response arrives' | 'response lost' {
    const { target } = at!
    const instance = { process: system.processes.get(effect.process)!, server: cluster.server, driver: driver.process }[
      target
    ]
    instance.crash()
    simulation.schedule(DOWNTIME_MS, () => instance.start())
    return target === effect.target ? 'response lost' : 'response arrives'
  }

  const result: CrashSystem = {
    simulation,
    system,
    driver,
    view,
    checkers,
    effects,
    report,
    claim: (name) => view.claims.get(`${NAMESPACE}/${name}`),
    throwIfViolated() {
      if (violations.length === 0) return
      const runText = at ? `CRASH_POINT='${formatCrashPoint(mode, at)}'` : mode
      throw new Error([`${runText}:`, ...violations, '-- trace', ...simulation.trace().slice(-TRACE_LINES)].join('\n'))
    },
  }
  const prepare = async (client: Client) => {
    await client.create(namespaceKind, { metadata: { name: NAMESPACE } })
    await options.prepare(client, driver)
  }
  await runUntilSettled(simulation, prepare(cluster.directClient()!), 'the initial objects')
  system.start()
  return result
}

export interface Ending {
  /** The final state of the run without a crash; undefined if this is that run. */
  readonly expected: string | undefined
  /** Returns the current state. */
  end(): string
  /** Whether all users have completed their steps. */
  isDone(): boolean
  /** Returns the steps that are not done, for the error message. */
  remainingSteps(): readonly string[]
  readonly endMsMax: number
  /** How long a run without a crash needs to come to rest. */
  readonly restMs: number
}

/** Waits for the final state, checks that it is the expected one and that it lasts, and throws if there was a violation. */
export async function finish(
  { simulation, checkers, view, report, throwIfViolated }: CrashSystem,
  ending: Ending,
): Promise<void> {
  const { expected, end, isDone, endMsMax: withinMs } = ending
  if (expected === undefined) {
    await simulation.runUntil(isDone, { withinMs, waitingFor: 'the end of all steps' })
    await simulation.runFor(ending.restMs)
  } else {
    await waitForExpected(expected)
    await simulation.runFor(STABLE_MS)
    if (end() !== expected) report('final state', `the expected state does not last:\n${end()}`)
  }
  for (const { rule, text } of checkers.problems()) report(rule, text)
  throwIfViolated()

  async function waitForExpected(expectedState: string): Promise<void> {
    let checkedMs = -1
    const isReached = () => {
      if (view.changedMs === checkedMs || !isDone()) return false
      checkedMs = view.changedMs
      return end() === expectedState && checkers.problems().length === 0
    }
    try {
      await simulation.runUntil(isReached, { withinMs, waitingFor: 'the expected state' })
    } catch (error) {
      const remainingSteps = ending.remainingSteps()
      if (remainingSteps.length > 0) report('final state', `steps were not done: ${remainingSteps.join(', ')}`)
      const [message] = (error as Error).message.split('\n')
      report('final state', `the state is\n${end()}\ninstead of\n${expectedState}\n(${message})`)
    }
  }
}
