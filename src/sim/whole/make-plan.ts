// Makes the plan of a seed: what kind of cluster, what kind of day, what people do and what breaks. The same seed makes
// the same plan; each purpose has dice of its own, so that a change in one part leaves the others as they were.
import { createWorld } from '../world.ts'
import { type Dice, diceOf } from './dice.ts'
import type { Draft } from './draft.ts'
import { deleteNamespace, switchGate, tidyUp } from './make-admin-acts.ts'
import { makeAmbushes } from './make-ambushes.ts'
import { loseState, makeFault, restartAgent } from './make-fault-acts.ts'
import { makePeopleAct } from './make-people-acts.ts'
import { makeWeather } from './make-weather.ts'
import type { FaultAct, PeopleAct, Plan, Setup, Step, Weather } from './plan.ts'
import { controlProcesses, nodesOf } from './processes.ts'

export interface PlanSize {
  readonly minutes?: number
  readonly operations?: number
  readonly faults?: number
  /** Faults that are aimed at what somebody is about to do. */
  readonly ambushes?: number
}

const MINUTE_MS = 60_000
/** With the time to heal and to come to rest it is more than an hour. */
const MINUTES = 50
const OPERATIONS = 220
const FAULTS = 24
const AMBUSHES = 6
/** How much more of each there may be. */
const MORE_OPERATIONS = 60
const MORE_FAULTS = 16
const MORE_AMBUSHES = 5
/** The day's end, in which little happens. */
const CALM_SHARE = 0.13
const CALM_OPERATIONS_SHARE = 0.05
/** So much a plan has of what changes everything. */
const NAMESPACE_GOES = 0.12
const NODE_GOES = 0.25
const GATE_SWITCHED = 0.03
const STATE_LOST = 0.02
const TIDIED_UP = 0.7
/** Days with a part in which no controller starts anew, so that what nobody was woken for stays undone. */
const STEADY_DAYS = 0.5

export function makePlan(seed: number, size: PlanSize = {}): Plan {
  const { dice: streamOf } = createWorld(seed)
  const diceFor = (purpose: string): Dice => diceOf(streamOf(`plan ${purpose}`))
  const sizes = diceFor('size')
  const minutes = size.minutes ?? MINUTES
  const setup = makeSetup(diceFor('setup'))
  const day: Day = {
    setup,
    calmFromMs: Math.floor(minutes * MINUTE_MS * (1 - CALM_SHARE)),
    endMs: minutes * MINUTE_MS,
    steadyFromMs: steadyFrom(diceFor('steady'), minutes * MINUTE_MS),
  }
  const operations = size.operations ?? OPERATIONS + sizes.roll(MORE_OPERATIONS)
  const faults = size.faults ?? FAULTS + sizes.roll(MORE_FAULTS)
  const people = peopleSteps(day, operations, {
    times: diceFor('times'),
    acts: diceFor('people'),
    rare: diceFor('rare'),
  })
  const broken = faultSteps(day, faults, people, { acts: diceFor('faults'), rare: diceFor('rare faults') })
  const perHour = AMBUSHES + diceFor('ambush size').roll(MORE_AMBUSHES)
  const ambushes = size.ambushes ?? Math.round((perHour * minutes) / MINUTES)
  const times = { untilMs: day.calmFromMs, steadyFromMs: day.steadyFromMs }
  const aimed = makeAmbushes(diceFor('ambushes'), setup, ambushes, times)
  const steps = [...people, ...broken, ...nodesThatGo(day, diceFor('nodes')), ...aimed].sort((a, b) => a.atMs - b.atMs)
  const weather = makeWeather(diceFor('weather'), setup)
  return { seed, minutes, setup, weather: day.steadyFromMs > 0 ? steadied(weather, setup) : weather, steps }
}

const steadyFrom = (dice: Dice, endMs: number): number =>
  dice.chance(STEADY_DAYS) ? Math.floor(endMs * (0.3 + 0.35 * dice.fraction())) : 0

/** By chance neither the controllers crash then, nor the server they lead by. */
function steadied(weather: Weather, setup: Setup): Weather {
  const steady = ['server', ...controlProcesses(setup)]
  const crashes = Object.entries(weather.crashes).filter(([name]) => !steady.includes(name))
  return { ...weather, crashes: Object.fromEntries(crashes) }
}

interface Day {
  readonly setup: Setup
  readonly calmFromMs: number
  readonly endMs: number
  /** From here on nothing shakes the controllers; 0: all day something may. */
  readonly steadyFromMs: number
}

const makeSetup = (dice: Dice): Setup => ({
  nodes: dice.chance(0.65) ? 2 : 3,
  controlReplicas: dice.chance(0.35) ? 2 : 1,
  home: dice.chance(0.75) ? 'together' : 'apart',
  commits: dice.chance(0.65) ? 'atomic' : 'one by one',
  capacityReservation: dice.chance(0.6),
  expansionQuota: dice.pick(['high-water-mark', 'actual']),
  netGrowsAlone: dice.chance(0.3),
})

interface Moment {
  readonly atMs: number
  readonly make: () => PeopleAct
}

interface PeopleDice {
  readonly times: Dice
  readonly acts: Dice
  readonly rare: Dice
}

function peopleSteps(day: Day, operations: number, { times, acts, rare }: PeopleDice): Step[] {
  const { setup, calmFromMs, endMs } = day
  const steps: Step[] = []
  let nowMs = 0
  const add = (atMs: number, act: PeopleAct) => void steps.push({ atMs: Math.min(Math.floor(atMs), endMs), act })
  const draft: Draft = {
    dice: acts,
    setup,
    hasAmounts: setup.commits === 'atomic',
    nodes: nodesOf(setup),
    claims: new Map(),
    pods: new Map(),
    quotas: new Map(),
    volumes: new Set(),
    released: [],
    imports: 0,
    later: (ms, act) => add(nowMs + ms, act),
  }
  const calm = Math.round(operations * CALM_OPERATIONS_SHARE)
  const common = (atMs: number): Moment => ({ atMs, make: () => makePeopleAct(draft, acts) })
  const once = (probability: number, make: (draft: Draft) => PeopleAct): Moment[] => {
    const atMs = calmFromMs * (0.15 + 0.7 * rare.fraction())
    return rare.chance(probability) ? [{ atMs, make: () => make({ ...draft, dice: rare }) }] : []
  }
  const moments = [
    ...burstsOf(times, Math.max(0, operations - calm), calmFromMs).map(common),
    ...Array.from({ length: calm }, () => common(calmFromMs + times.fraction() * (endMs - calmFromMs))),
    ...once(NAMESPACE_GOES, deleteNamespace),
    ...once(GATE_SWITCHED, switchGate),
  ].sort((a, b) => a.atMs - b.atMs)
  for (const { atMs, make } of moments) {
    nowMs = atMs
    add(atMs, make())
  }
  if (rare.chance(TIDIED_UP)) for (const act of tidyUp(draft)) add(calmFromMs + rare.fraction() * MINUTE_MS, act)
  return steps
}

/** People come in bursts, with pauses between: some things happen at once, others have time to end. */
function burstsOf(dice: Dice, count: number, untilMs: number): number[] {
  const moments: number[] = []
  while (moments.length < count) {
    const beginMs = dice.fraction() * untilMs
    const lengthMs = dice.pick([500, 5_000, 20_000, 60_000])
    for (let left = dice.between(1, 12); left > 0 && moments.length < count; left--)
      moments.push(Math.min(untilMs, beginMs + dice.fraction() * lengthMs))
  }
  return moments
}

/** How soon after something was done something breaks, most of the time. */
const SOON_MS = 4_000
/** Nothing breaks in the last part of the calm, so that some of the day's work ends before everything is healed. */
const LAST_FAULT_SHARE = 0.95

function faultSteps(day: Day, count: number, people: readonly Step[], dice: { acts: Dice; rare: Dice }): Step[] {
  const { acts, rare } = dice
  const lastMs = day.endMs * LAST_FAULT_SHARE
  const step = (atMs: number, act: FaultAct): Step => ({ atMs: Math.floor(Math.min(atMs, lastMs)), act })
  const moment = (): number => {
    const after = people.length > 0 && acts.chance(0.65) ? acts.pick(people) : undefined
    const atMs = after ? after.atMs + acts.fraction() * SOON_MS : acts.fraction() * day.calmFromMs
    // The calm has its faults too, but few.
    return atMs > day.calmFromMs && acts.chance(0.7) ? acts.fraction() * day.calmFromMs : atMs
  }
  const steps = Array.from({ length: count }, () => {
    const [atMs, act] = [moment(), makeFault(acts, day.setup)]
    const isLate = day.steadyFromMs > 0 && isShaking(act, day.setup)
    return step(isLate ? (atMs / day.endMs) * day.steadyFromMs : atMs, act)
  })
  if (rare.chance(STATE_LOST)) steps.push(step(rare.fraction() * day.calmFromMs, loseState(rare)))
  return steps
}

/** Whether controllers crash or may lose their lease over it. */
function isShaking(act: FaultAct, setup: Setup): boolean {
  if (act.do === 'refuse writes') return true
  if (act.do !== 'crash' && act.do !== 'freeze' && act.do !== 'bad network') return false
  return act.process === undefined || ['server', ...controlProcesses(setup)].includes(act.process)
}

/** A node's object is deleted; it is back when its agent starts anew. */
function nodesThatGo(day: Day, dice: Dice): Step[] {
  if (!dice.chance(NODE_GOES)) return []
  const node = dice.pick(nodesOf(day.setup))
  const atMs = Math.floor(day.calmFromMs * (0.1 + 0.8 * dice.fraction()))
  return [
    { atMs, act: { do: 'delete', kind: 'node', of: { name: node } } },
    { atMs: atMs + dice.between(100, 120_000), act: restartAgent(dice, node) },
  ]
}
