import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SimulationRun } from '../engine/run-plan.ts'
import type { Plan, Step } from './plan.ts'
import { type RunPlan, shrink } from './shrink-plan.ts'

describe('shrinking a failing plan', () => {
  it('returns a plan that violates the same rule and has no step that can be removed', async () => {
    await fc.assert(
      fc.asyncProperty(failingPlans(), async ({ plan, fails }) => {
        const shrunk = (await shrink(plan, createRunner(fails), AMPLE_BUDGET))!
        expect(shrunk.rule).toBe('leak')
        expect(shrunk.isComplete).toBe(true)
        expect(fails(shrunk.plan)).toBe(true)
        expect(shrunk.run.plan).toBe(shrunk.plan)
        for (const index of shrunk.plan.steps.keys())
          expect(fails({ ...shrunk.plan, steps: shrunk.plan.steps.toSpliced(index, 1) })).toBe(false)
      }),
      { numRuns: 200 },
    )
  })

  it('finds three causes among 250 steps in under 100 runs', async () => {
    const plan = fakePlan(250)
    const fails = (candidate: Plan) => ['c20', 'c101', 'c230'].every((name) => claimNames(candidate).includes(name))
    const shrunk = (await shrink(plan, createRunner(fails), AMPLE_BUDGET))!
    expect(claimNames(shrunk.plan)).toEqual(['c20', 'c101', 'c230'])
    expect(shrunk.runs).toBeLessThan(100)
  })

  it('simplifies fault rates, setup, times and values, and keeps the parts needed to fail', async () => {
    const fails = ({ faultRates, setup, steps }: Plan) =>
      (faultRates.crashes['control-1'] ?? 0) > 0 &&
      setup.nodes === 3 &&
      steps.some(({ action }) => action.do === 'crash' && action.downMs >= 10_000) &&
      steps.some(({ action }) => action.do === 'create' && JSON.stringify(action.object).includes('gold'))
    const crash: Step = { atMs: 1_234_567, action: { do: 'crash', process: 'server', downMs: 90_000 } }
    const { plan } = (await shrink(
      { ...fakePlan(4), steps: [...fakePlan(4).steps, crash] },
      createRunner(fails),
      AMPLE_BUDGET,
    ))!
    expect(plan).toEqual({
      seed: 7,
      minutes: 1,
      setup: {
        nodes: 3,
        controlReplicas: 1,
        driverControllers: 'in-process',
        commits: 'atomic',
        capacityReservation: false,
        expansionQuota: 'high-water-mark',
        netExpandsWithoutNode: false,
      },
      faultRates: { network: {}, diskErrors: 0, drivers: {}, crashes: { 'control-1': 0.001 } },
      steps: [
        {
          atMs: 1_000,
          action: {
            do: 'create',
            kind: 'claim',
            object: {
              metadata: { namespace: 'team-a', name: 'c3' },
              spec: { volumeAttributesClassName: 'gold' },
            },
          },
        },
        { atMs: 2_000, action: { do: 'crash', process: 'server', downMs: 11_250 } },
      ],
    })
  })

  it('does not shrink to a violation of another rule', async () => {
    const run: RunPlan = async (plan) => {
      const has = (name: string) => claimNames(plan).includes(name)
      if (has('c1') && has('c2')) return fakeRun(plan, 'leak')
      return has('c1') ? fakeRun(plan, 'quota') : fakeRun(plan)
    }
    const shrunk = (await shrink(fakePlan(6), run, AMPLE_BUDGET))!
    expect(claimNames(shrunk.plan)).toEqual(['c1', 'c2'])
  })

  it('stops when the budget of runs or time is used up, and returns the smallest plan so far', async () => {
    const fails = (candidate: Plan) => claimNames(candidate).includes('c3')
    let runs = 0
    const countingRunner: RunPlan = (plan) => {
      runs++
      return createRunner(fails)(plan)
    }
    const limitedResult = (await shrink(fakePlan(64), countingRunner, {
      ...AMPLE_BUDGET,
      budget: { runs: 5, ms: 1_000 },
    }))!
    expect(runs).toBe(5)
    expect(limitedResult).toMatchObject({ runs: 5, isComplete: false })
    expect(fails(limitedResult.plan)).toBe(true)
    expect(limitedResult.plan.steps.length).toBeLessThan(64)

    let nowMs = 0
    const clock = { monotonicMs: () => nowMs }
    const slowRunner: RunPlan = (plan) => {
      nowMs += 400
      return createRunner(fails)(plan)
    }
    const timeLimitedResult = (await shrink(fakePlan(64), slowRunner, { clock, budget: { runs: 1_000, ms: 1_000 } }))!
    expect(timeLimitedResult).toMatchObject({ runs: 4, isComplete: false })
  })

  it('does not shrink a plan without a violation', async () => {
    expect(await shrink(fakePlan(3), async (plan) => fakeRun(plan), AMPLE_BUDGET)).toBeUndefined()
  })
})

const AMPLE_BUDGET = { budget: { runs: 20_000, ms: 1 }, clock: { monotonicMs: () => 0 } }

const claimNames = (plan: Plan): string[] =>
  plan.steps.flatMap(({ action }) =>
    action.do === 'create' ? [(action.object.metadata as { name: string }).name] : [],
  )

const createRunner =
  (fails: (plan: Plan) => boolean): RunPlan =>
  async (plan) =>
    fails(plan) ? fakeRun(plan, 'leak') : fakeRun(plan)

function fakeRun(plan: Plan, rule?: string): SimulationRun {
  const violations = rule ? [{ atMs: plan.minutes * 60_000, rule, text: 'it happened' }] : []
  return { plan, violations, trace: [], fingerprint: 0, virtualMs: 0, operations: {}, faults: {} }
}

function fakePlan(steps: number): Plan {
  return {
    seed: 7,
    minutes: 60,
    setup: {
      nodes: 3,
      controlReplicas: 2,
      driverControllers: 'sidecars',
      commits: 'one by one',
      capacityReservation: true,
      expansionQuota: 'actual',
      netExpandsWithoutNode: false,
    },
    faultRates: {
      network: { loseReply: 0.01, refuse: 0.01 },
      diskErrors: 0.01,
      drivers: { 'net.sim': { refuse: 0.02, slow: 0.1 }, 'local.sim': { refuse: 0.1 } },
      crashes: { 'control-1': 0.001, server: 0.001 },
    },
    steps: Array.from({ length: steps }, (_, index) => ({
      atMs: index * 10_123,
      action: {
        do: 'create',
        kind: 'claim',
        object: {
          metadata: { namespace: 'team-a', name: `c${index}`, labels: { a: 'b' } },
          spec: { volumeAttributesClassName: 'gold', resources: { requests: { storage: '4Gi' } } },
        },
      },
    })),
  }
}

/** Plans, each with a condition on the claims that it must still create to fail. */
function failingPlans() {
  return fc
    .tuple(
      fc.integer({ min: 1, max: 40 }),
      fc.array(fc.array(fc.nat(39), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
    )
    .map(([length, sets, isEven]) => {
      const plan = fakePlan(length)
      const requiredSets = sets.map((set) => [...new Set(set.map((index) => `c${index % length}`))])
      const requiredNames = new Set(requiredSets.flat())
      const fails = (candidate: Plan): boolean => {
        const presentNames = new Set(claimNames(candidate))
        if (!requiredSets.some((set) => set.every((name) => presentNames.has(name)))) return false
        return (
          !isEven || [...requiredNames].filter((name) => presentNames.has(name)).length % 2 === requiredNames.size % 2
        )
      }
      return { plan, fails }
    })
}
