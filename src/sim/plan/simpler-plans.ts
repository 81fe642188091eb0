// Ways to simplify a plan other than removing steps: each function yields plans that are simpler in one respect.
import type { Action, FaultRates, Plan, Setup } from './plan.ts'

export type Simplifier = (plan: Plan) => Iterable<Plan>

export function* simplerFaultRates(plan: Plan): Iterable<Plan> {
  const { faultRates } = plan
  const changeRates = (change: Partial<FaultRates>): Plan => ({ ...plan, faultRates: { ...faultRates, ...change } })
  if (faultRates.diskErrors > 0) yield changeRates({ diskErrors: 0 })
  for (const part of ['network', 'drivers', 'crashes'] as const)
    if (Object.keys(faultRates[part]).length > 0) yield changeRates({ [part]: {} })
  for (const network of omitEachKey(faultRates.network)) yield changeRates({ network })
  for (const drivers of omitEachKey(faultRates.drivers)) yield changeRates({ drivers })
  for (const crashes of omitEachKey(faultRates.crashes)) yield changeRates({ crashes })
  for (const [driver, faults] of Object.entries(faultRates.drivers))
    for (const fewerFaults of omitEachKey(faults))
      yield changeRates({ drivers: { ...faultRates.drivers, [driver]: fewerFaults } })
}

const SIMPLEST_SETUP: Setup = {
  nodes: 2,
  controlReplicas: 1,
  driverControllers: 'in-process',
  commits: 'atomic',
  capacityReservation: false,
  expansionQuota: 'high-water-mark',
  netExpandsWithoutNode: false,
  identities: false,
}

export function* simplerSetups(plan: Plan): Iterable<Plan> {
  const { answers, ...setup } = plan.setup
  if (answers) yield { ...plan, setup }
  for (const key of Object.keys(SIMPLEST_SETUP) as (keyof Setup)[])
    if ((plan.setup[key] ?? false) !== SIMPLEST_SETUP[key])
      yield { ...plan, setup: { ...plan.setup, [key]: SIMPLEST_SETUP[key] } }
}

const MINUTE_MS = 60_000
const SECOND_MS = 1_000

/** Yields plans with a shorter duration, shorter pauses, or steps at whole seconds. */
export function* simplerTimes(plan: Plan): Iterable<Plan> {
  const lastMs = plan.steps.at(-1)?.atMs ?? 0
  const requiredMinutes = Math.max(1, Math.ceil(lastMs / MINUTE_MS))
  for (const minutes of [requiredMinutes, requiredMinutes + 2, Math.ceil((requiredMinutes + plan.minutes) / 2)])
    if (minutes < plan.minutes) yield { ...plan, minutes }

  const pauses = plan.steps.map((step, index) => step.atMs - (plan.steps[index - 1]?.atMs ?? 0))
  const changePauses = (change: (ms: number, index: number) => number): Plan => {
    let atMs = 0
    return {
      ...plan,
      steps: plan.steps.map((step, index) => {
        atMs += change(pauses[index]!, index)
        return { ...step, atMs }
      }),
    }
  }
  const isLong = (ms: number) => ms > SECOND_MS
  const halve = (ms: number) => (isLong(ms) ? Math.max(SECOND_MS, Math.floor(ms / 2)) : ms)
  if (pauses.some(isLong)) {
    yield changePauses((ms) => Math.min(ms, SECOND_MS))
    yield changePauses((ms) => Math.min(ms, MINUTE_MS))
    yield changePauses(halve)
    for (const [shortenedIndex, ms] of pauses.entries())
      if (isLong(ms)) yield changePauses((pauseMs, index) => (index === shortenedIndex ? SECOND_MS : pauseMs))
  }
  const floorToSecond = (ms: number) => Math.floor(ms / SECOND_MS) * SECOND_MS
  if (plan.steps.some(({ atMs }) => atMs % SECOND_MS !== 0))
    yield { ...plan, steps: plan.steps.map((step) => ({ ...step, atMs: floorToSecond(step.atMs) })) }
}

/** Yields plans with shorter faults, smaller counts, objects without an optional field, or a size of 1Gi. */
export function* simplerValues(plan: Plan): Iterable<Plan> {
  for (const [index, step] of plan.steps.entries())
    for (const action of simplerActions(step.action))
      yield { ...plan, steps: plan.steps.with(index, { ...step, action }) }
}

/** The smallest sensible value of a number in an action. */
const MINIMUM: Readonly<Record<string, number>> = { downMs: 1_000, ms: 1_000, byMs: 60_000, times: 1 }

function* simplerActions(action: Action): Iterable<Action> {
  for (const [key, value] of Object.entries(action)) {
    const minimum = MINIMUM[key]
    if (minimum === undefined || typeof value !== 'number') continue
    const sign = Math.sign(value) || 1 // a clock may jump backwards
    for (const smaller of [minimum, Math.floor(Math.abs(value) / 2)])
      if (smaller >= minimum && smaller < Math.abs(value)) yield { ...action, [key]: sign * smaller } as Action
  }
  if (action.do === 'delete' && action.graceSeconds !== undefined) {
    const { graceSeconds: _, ...actionWithoutGrace } = action
    yield actionWithoutGrace
  }
  for (const key of ['object', 'patch'] as const) {
    const value = (action as { object?: object; patch?: object })[key]
    if (value) for (const simpler of simplerObjects(value, [])) yield { ...action, [key]: simpler } as Action
  }
}

/** Fields that are not removed. */
const REQUIRED_FIELDS = new Set(['apiVersion', 'kind', 'metadata', 'metadata.name', 'metadata.namespace', 'spec'])
const SIZE = /^\d+Gi$/

function* simplerObjects(object: object, path: readonly string[]): Iterable<object> {
  const isList = Array.isArray(object)
  const entries = Object.entries(object)
  for (const [key] of entries) {
    if (REQUIRED_FIELDS.has([...path, key].join('.')) || (isList && entries.length === 1)) continue
    if (isList) yield object.filter((_, index) => String(index) !== key)
    else yield omitKey(object, key)
  }
  for (const [key, value] of entries) {
    const replaceWith = (simpler: unknown): object =>
      isList ? object.with(Number(key), simpler) : { ...object, [key]: simpler }
    if (typeof value === 'object' && value !== null) {
      for (const simpler of simplerObjects(value, [...path, key])) yield replaceWith(simpler)
    } else if (typeof value === 'string' && SIZE.test(value) && Number.parseInt(value, 10) > 1) {
      yield replaceWith('1Gi')
    }
  }
}

function omitKey<T extends object>(object: T, key: string): T {
  const { [key]: _, ...remaining } = object as Record<string, unknown>
  return remaining as T
}

function* omitEachKey<T extends object>(object: T): Iterable<T> {
  const keys = Object.keys(object)
  if (keys.length > 1) for (const key of keys) yield omitKey(object, key)
}
