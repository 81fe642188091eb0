// Generates the plan of a seed: setup, fault rates, user actions and faults. The same seed and options always produce the same
// plan. Each purpose draws from its own random stream: a change in one part does not change the others.
// User actions are in *-actions.ts, faults in *faults.ts, node-losses.ts and fault-rates.ts.

import { createSimulation } from '../environment/simulation.ts'
import type { Fault, FaultRates, Plan, Setup, Step, UserAction } from '../plan/plan.ts'
import { controlProcesses, nodesOf, SECOND_PROVISIONER } from '../plan/process-names.ts'
import { deleteNamespace, restoreObjects, setGate } from './admin-actions.ts'
import type { Draft } from './draft.ts'
import { generateFaultRates } from './fault-rates.ts'
import { generateAgentRestart, generateFault, generateStateLoss } from './faults.ts'
import { generateNodeLosses } from './node-losses.ts'
import { createRng, type Rng } from './rng.ts'
import { generateStockFaults } from './stock-faults.ts'
import { generateTargetedFaults, generateUnansweredNodeDeletions } from './targeted-faults.ts'
import { WORKLOADS, type Workload, type WorkloadName } from './workloads.ts'

export interface PlanOptions {
  /** Default `mixed`. */
  readonly workload?: WorkloadName
  readonly minutes?: number
  readonly operations?: number
  readonly faults?: number
  /** Faults aimed at an action that is in progress. */
  readonly targetedFaults?: number
  /** How the server answers. Default: as a Stowage server. */
  readonly answers?: 'stock'
}

const MINUTE_MS = 60_000
/** The share of a plan's time that belongs to its calm final period, and the share of all actions in that period. */
const CALM_SHARE = 0.13
const CALM_OPERATIONS_SHARE = 0.05
/** Probabilities that a plan contains these rare events, and that it restores deleted objects at its end. */
const NAMESPACE_DELETION_CHANCE = 0.12
const NODE_DELETION_CHANCE = 0.25
const GATE_CHANGE_CHANCE = 0.03
const STATE_LOSS_CHANCE = 0.02
const RESTORE_CHANCE = 0.7
/** The share of plans with a period in which no controller restarts: a new leader lists everything and hides missed wake-ups. */
const STEADY_PLANS_SHARE = 0.5

/**
 * Names of the random streams. They determine the plan of a seed: renaming one changes the plan of every seed, and the seeds
 * in docs/explanation/simulation.md would no longer reproduce their failures.
 */
const STREAMS = {
  sizes: 'size',
  setup: 'setup',
  steady: 'steady',
  times: 'times',
  users: 'people',
  rareActions: 'rare',
  firstActions: 'first actions',
  faults: 'faults',
  rareFaults: 'rare faults',
  targetedCount: 'ambush size',
  targetedFaults: 'ambushes',
  unansweredNodeDeletions: 'lost nodes',
  nodes: 'nodes',
  nodeLosses: 'node losses',
  faultRates: 'weather',
  stockFaults: 'stock faults',
  identities: 'identities',
} as const

export function generatePlan(seed: number, options: PlanOptions = {}): Plan {
  const { random } = createSimulation(seed)
  const rngFor = (purpose: keyof typeof STREAMS): Rng => createRng(random(`plan ${STREAMS[purpose]}`))
  const name = options.workload ?? 'mixed'
  const workload: Workload = WORKLOADS[name]
  const sizes = rngFor('sizes')
  const minutes = options.minutes ?? workload.minutes
  const isStock = options.answers === 'stock'
  const setup: Setup = {
    ...generateSetup(rngFor('setup')),
    ...workload.setup?.(seed),
    ...(isStock ? { commits: 'one by one', answers: 'stock' } : {}),
    identities: rngFor('identities').chance(0.5),
  }
  const period: Period = {
    setup,
    calmStartMs: Math.floor(minutes * MINUTE_MS * (1 - CALM_SHARE)),
    endMs: minutes * MINUTE_MS,
    steadyStartMs: someSteadyStartMs(rngFor('steady'), minutes * MINUTE_MS),
  }
  const [leastOperations, mostOperations] = workload.operations
  const [leastFaults, mostFaults] = workload.faults
  const [leastTargeted, mostTargeted] = workload.targetedFaults
  const operations = options.operations ?? leastOperations + sizes.below(mostOperations - leastOperations)
  const faults = options.faults ?? leastFaults + sizes.below(mostFaults - leastFaults)
  const userSteps = generateUserSteps(period, operations, workload, {
    times: rngFor('times'),
    actions: rngFor('users'),
    rare: rngFor('rareActions'),
    first: rngFor('firstActions'),
  })
  const faultSteps = generateFaultSteps(period, faults, userSteps, {
    faults: rngFor('faults'),
    rare: workload.hasRareActions ? rngFor('rareFaults') : undefined,
  })
  const countPerPlan = leastTargeted + rngFor('targetedCount').below(mostTargeted - leastTargeted + 1)
  const targetedCount = options.targetedFaults ?? Math.round((countPerPlan * minutes) / workload.minutes)
  const times = { untilMs: period.calmStartMs, steadyStartMs: period.steadyStartMs }
  const targetedSteps = generateTargetedFaults(rngFor('targetedFaults'), setup, targetedCount, times)
  const nodeSteps = generateNodeDeletions(period, workload, rngFor('nodes'))
  const { unansweredNodeDeletions } = workload
  const unansweredSteps = unansweredNodeDeletions
    ? generateUnansweredNodeDeletions(rngFor('unansweredNodeDeletions'), setup, unansweredNodeDeletions, times)
    : []
  const lossSteps = workload.nodeLosses
    ? generateNodeLosses(
        rngFor('nodeLosses'),
        setup,
        rngFor('nodeLosses').between(...workload.nodeLosses),
        period.calmStartMs,
      )
    : []
  const stockFaultSteps = isStock ? generateStockFaults(rngFor('stockFaults'), period.calmStartMs) : []
  const steps = [
    ...userSteps,
    ...faultSteps,
    ...nodeSteps,
    ...targetedSteps,
    ...unansweredSteps,
    ...lossSteps,
    ...stockFaultSteps,
  ]
    .filter(({ action }) => !workload.nodeLosses || (action.do !== 'jump clock' && action.do !== 'cut power'))
    .sort((a, b) => a.atMs - b.atMs)
  const rates = generateFaultRates(rngFor('faultRates'), setup, workload.severity)
  const faultRates = period.steadyStartMs > 0 ? removeControllerCrashes(rates, setup) : rates
  const plan = removeProvisionerCrashes({ seed, minutes, setup, faultRates, steps })
  return name === 'mixed' ? plan : { ...plan, workload: name, atRest: workload.atRest ?? [] }
}

const someSteadyStartMs = (rng: Rng, endMs: number): number =>
  rng.chance(STEADY_PLANS_SHARE) ? Math.floor(endMs * (0.3 + 0.35 * rng.fraction())) : 0

/** Removes random crashes of the controllers, and of the server that their leases depend on. */
function removeControllerCrashes(rates: FaultRates, setup: Setup): FaultRates {
  const steadyProcesses = ['server', ...controlProcesses(setup)]
  const crashes = Object.entries(rates.crashes).filter(([name]) => !steadyProcesses.includes(name))
  return { ...rates, crashes: Object.fromEntries(crashes) }
}

/**
 * Removes crashes and freezes of the provisioner if there is a second one. Both share the intent on a claim: if one crashes,
 * the other may complete the intent without its work.
 */
function removeProvisionerCrashes(plan: Plan): Plan {
  if (!plan.setup.secondProvisioner) return plan
  const isProvisioner = (name: string) => name.startsWith('provisioner-net.sim') || name === SECOND_PROVISIONER
  const steps = plan.steps.filter(
    ({ action }) => (action.do !== 'crash' && action.do !== 'freeze') || !isProvisioner(action.process),
  )
  const crashes = Object.entries(plan.faultRates.crashes).filter(([name]) => !isProvisioner(name))
  return { ...plan, steps, faultRates: { ...plan.faultRates, crashes: Object.fromEntries(crashes) } }
}

interface Period {
  readonly setup: Setup
  readonly calmStartMs: number
  readonly endMs: number
  /** From then on no fault makes a controller restart or lose its lease; 0 if there is no such period. */
  readonly steadyStartMs: number
}

const generateSetup = (rng: Rng): Setup => ({
  nodes: rng.chance(0.65) ? 2 : 3,
  controlReplicas: rng.chance(0.35) ? 2 : 1,
  driverControllers: rng.chance(0.75) ? 'in-process' : 'sidecars',
  commits: rng.chance(0.65) ? 'atomic' : 'one by one',
  capacityReservation: rng.chance(0.6),
  expansionQuota: rng.pick(['high-water-mark', 'actual']),
  netExpandsWithoutNode: rng.chance(0.3),
})

interface Moment {
  readonly atMs: number
  readonly generate: () => UserAction
}

interface UserRngs {
  readonly times: Rng
  readonly actions: Rng
  readonly rare: Rng
  readonly first: Rng
}

function generateUserSteps(period: Period, operations: number, workload: Workload, rngs: UserRngs): Step[] {
  const { times, actions, rare, first } = rngs
  const { setup, calmStartMs, endMs } = period
  const steps: Step[] = []
  let nowMs = 0
  const add = (atMs: number, action: UserAction) => void steps.push({ atMs: Math.min(Math.floor(atMs), endMs), action })
  const draft: Draft = {
    rng: actions,
    setup,
    hasAmounts: setup.commits === 'atomic',
    nodes: nodesOf(setup),
    claims: new Map(),
    pods: new Map(),
    quotas: new Map(),
    volumes: new Set(),
    releasedClaims: [],
    imports: 0,
    addLater: (ms, action) => add(nowMs + ms, action),
  }
  const calmCount = Math.round(operations * CALM_OPERATIONS_SHARE)
  const commonMoment = (atMs: number): Moment => ({
    atMs,
    generate: () => actions.pickWeighted(workload.actions)(draft),
  })
  const rareMoments = (probability: number, generate: (draft: Draft) => UserAction): Moment[] => {
    const atMs = calmStartMs * (0.15 + 0.7 * rare.fraction())
    return rare.chance(probability) ? [{ atMs, generate: () => generate({ ...draft, rng: rare }) }] : []
  }
  const firstMoments = ({ count: [least, most], withinMs, actions: rows }: NonNullable<Workload['firstActions']>) =>
    Array.from({ length: first.between(least, most) }, (): Moment => {
      const generate = () => first.pickWeighted(rows)({ ...draft, rng: first })
      return { atMs: first.fraction() * withinMs, generate }
    })
  const moments = [
    ...(workload.firstActions ? firstMoments(workload.firstActions) : []),
    ...generateBursts(times, Math.max(0, operations - calmCount), calmStartMs).map(commonMoment),
    ...Array.from({ length: calmCount }, () => commonMoment(calmStartMs + times.fraction() * (endMs - calmStartMs))),
    ...(workload.hasRareActions
      ? [...rareMoments(NAMESPACE_DELETION_CHANCE, deleteNamespace), ...rareMoments(GATE_CHANGE_CHANCE, setGate)]
      : []),
  ].sort((a, b) => a.atMs - b.atMs)
  for (const { atMs, generate } of moments) {
    nowMs = atMs
    add(atMs, generate())
  }
  if (rare.chance(RESTORE_CHANCE))
    for (const action of restoreObjects(draft)) add(calmStartMs + rare.fraction() * MINUTE_MS, action)
  return steps
}

/** Returns the times of actions. They come in bursts with pauses between them: some overlap, others have time to complete. */
function generateBursts(rng: Rng, count: number, untilMs: number): number[] {
  const moments: number[] = []
  while (moments.length < count) {
    const beginMs = rng.fraction() * untilMs
    const lengthMs = rng.pick([500, 5_000, 20_000, 60_000])
    for (let remaining = rng.between(1, 12); remaining > 0 && moments.length < count; remaining--)
      moments.push(Math.min(untilMs, beginMs + rng.fraction() * lengthMs))
  }
  return moments
}

/** Most faults follow a user action within this time, while its effects are in progress. */
const SOON_MS = 4_000
/** No random fault starts after this share of the plan, which lets some work complete before all faults end. */
const LAST_FAULT_SHARE = 0.95

interface FaultRngs {
  readonly faults: Rng
  readonly rare: Rng | undefined
}

function generateFaultSteps(period: Period, count: number, userSteps: readonly Step[], rngs: FaultRngs): Step[] {
  const { faults, rare } = rngs
  const lastMs = period.endMs * LAST_FAULT_SHARE
  const stepAt = (atMs: number, action: Fault): Step => ({ atMs: Math.floor(Math.min(atMs, lastMs)), action })
  const someMomentMs = (): number => {
    const precedingStep = userSteps.length > 0 && faults.chance(0.65) ? faults.pick(userSteps) : undefined
    const atMs = precedingStep
      ? precedingStep.atMs + faults.fraction() * SOON_MS
      : faults.fraction() * period.calmStartMs
    // The calm period has few faults.
    return atMs > period.calmStartMs && faults.chance(0.7) ? faults.fraction() * period.calmStartMs : atMs
  }
  const steps = Array.from({ length: count }, () => {
    const [atMs, action] = [someMomentMs(), generateFault(faults, period.setup)]
    const isBeforeSteadyPeriod = period.steadyStartMs > 0 && disruptsControllers(action, period.setup)
    return stepAt(isBeforeSteadyPeriod ? (atMs / period.endMs) * period.steadyStartMs : atMs, action)
  })
  if (rare?.chance(STATE_LOSS_CHANCE)) steps.push(stepAt(rare.fraction() * period.calmStartMs, generateStateLoss(rare)))
  return steps
}

/** Whether the fault makes controllers crash or may make them lose their lease. */
function disruptsControllers(fault: Fault, setup: Setup): boolean {
  if (fault.do === 'refuse writes') return true
  if (fault.do !== 'crash' && fault.do !== 'freeze' && fault.do !== 'bad network') return false
  return fault.process === undefined || ['server', ...controlProcesses(setup)].includes(fault.process)
}

function generateNodeDeletions(period: Period, { nodeDeletions, hasRareActions }: Workload, rng: Rng): Step[] {
  if (!nodeDeletions) return hasRareActions && rng.chance(NODE_DELETION_CHANCE) ? generateNodeDeletion(period, rng) : []
  const [least, most] = nodeDeletions
  return Array.from({ length: rng.between(least, most) }, () => generateNodeDeletion(period, rng)).flat()
}

/** Deletes a node's object, and restarts its agent, which registers the node again. */
function generateNodeDeletion(period: Period, rng: Rng): Step[] {
  const node = rng.pick(nodesOf(period.setup))
  const atMs = Math.floor(period.calmStartMs * (0.1 + 0.8 * rng.fraction()))
  return [
    { atMs, action: { do: 'delete', kind: 'node', ref: { name: node } } },
    { atMs: atMs + rng.between(100, 120_000), action: generateAgentRestart(rng, node) },
  ]
}
