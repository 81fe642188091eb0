import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { SimulationRun } from '../engine/run-plan.ts'
import type { Plan } from '../plan/plan.ts'
import { readRegressions } from '../plan/plan-file.ts'
import { runSeed, type SimProgram, simulate } from './command.ts'
import { readFlags } from './flags.ts'

const dir = await mkdtemp(join(tmpdir(), 'sim-command-'))
afterAll(() => rm(dir, { recursive: true, force: true }))

describe('npm run sim', () => {
  it('SYS-14 --seed runs a seed and prints its violation and how to replay it', async () => {
    const { code, out } = await sim('--seed 13 --operations 4')
    expect(code).toBe(1)
    expect(out).toContain('VIOLATION at 60:00.0, rule "leak": claim team-a/c2 of seed 13 leaks')
    expect(out).toContain('Replay:  npm run sim -- --seed 13 --operations 4\n')
    expect(out).toContain('Shrink:  npm run sim -- --seed 13 --operations 4 --shrink\n')
    const passingRun = await sim('--seed 12')
    expect(passingRun).toMatchObject({ code: 0, out: expect.stringMatching(/seeds with violations +0/) })
  })

  it('--shrink prints the shrunk plan, and --save writes it as a regression that --plan runs', async () => {
    const { code, out } = await sim('--seed 13 --shrink')
    expect(code).toBe(1)
    expect(out).toMatch(/8 steps became 1 in \d+ runs\.\n/)

    const savedCode = await simulate(
      ['--seed', '13', '--save', '--description', 'A volume leaked.'],
      programWith({ print: () => {} }),
    )
    expect(savedCode).toBe(1)
    expect(await readdir(dir)).toContain('leak-13.json')
    const [regression] = await readRegressions(dir)
    expect(regression).toMatchObject({ description: 'A volume leaked.', rule: 'leak', plan: { seed: 13 } })
    expect(regression!.plan.steps).toHaveLength(1)
    const replay = await sim(`--plan ${join(dir, 'leak-13.json')}`)
    expect(replay).toMatchObject({ code: 1, out: expect.stringContaining('1 step in') })
  })

  it('--seeds prints one table, shrinks the first failure of each rule and writes figures as JSON', async () => {
    const json = join(dir, 'figures')
    const { code, out } = await sim(`--seeds 30 --from 1 --json ${json}`)
    expect(code).toBe(1)
    expect(out).toContain('Seeds from 1, 2 at once.')
    expect(out).toMatch(/^seeds +30$/m)
    expect(out).toContain('leak: 2 seeds\n')
    expect(out).toContain('crash: 1 seed\n')
    expect(out).toContain('seed 13  leak: claim team-a/c2 of seed 13 leaks\n')
    expect(out).toContain('Seed 13, rule "leak": shrinking …')
    expect(out).not.toContain('Seed 26, rule "leak": shrinking …')
    expect(out).toContain('Seed 17, rule "crash": shrinking …')
    expect(out).toContain('Replay:  npm run sim -- --seed 17\n')
    expect(JSON.parse(await readFile(json, 'utf8'))).toMatchObject({ seeds: 30, failures: [{}, {}, {}] })
    expect(await sim('--seeds 3 --from 1')).toMatchObject({ code: 0 })
  })

  it("passes a run's flags to workers and replay lines", async () => {
    const flags = '--workload quota --answers stock --operations 4 --faults 3 --targeted-faults 12 --twice'
    const startedFlags: string[] = []
    const startWorker: SimProgram['startWorker'] = (workerFlags) => {
      startedFlags.push(workerFlags.join(' '))
      return fakeWorker(workerFlags)
    }
    const { out } = await sim(`--seeds 1 --from 13 --workers 1 ${flags}`, { startWorker })
    expect(startedFlags).toEqual([flags])
    expect(out).toContain(`Replay:  npm run sim -- --seed 13 ${flags}\n`)
    const singleRun = await sim(`--seed 13 ${flags}`)
    expect(singleRun.out).toContain(`Replay:  npm run sim -- --seed 13 ${flags}\n`)
  })

  it('--minutes runs seeds until the time is up, starting with a seed from the clock', async () => {
    const clock = manualClock(1_700_000_123_000)
    const slowWorker: SimProgram['startWorker'] = (flags) => {
      const worker = fakeWorker(flags)
      return {
        ...worker,
        run: async (seed) => {
          await clock.advance(10_000)
          return worker.run(seed)
        },
      }
    }
    const program = { clock, startWorker: slowWorker, generatePlan: (seed: number) => fakePlan(seed % 10) }
    const { out } = await sim('--minutes 1 --workers 1', program)
    expect(out).toContain('Seeds from 700000123, 1 at once.')
    expect(out).toMatch(/^seeds +6$/m)
  })

  it('SYS-14 --twice prints the first line that differs between two runs of a seed', async () => {
    let lines = 0
    const run = async (plan: Plan): Promise<SimulationRun> => ({
      ...fakeRun(plan),
      trace: ['1.000s same', `2.000s ${lines++}`],
    })
    const { code, out } = await sim('--seed 3 --twice', { run })
    expect(code).toBe(1)
    expect(out).toContain(
      'rule "same seed, same run": line 2 of the trace was\n  2.000s 0\nand the second time\n  2.000s 1\n',
    )
    expect(await sim('--seed 3 --twice')).toMatchObject({ code: 0 })
  })

  it('replaces a worker that crashes and reports its seed without a result', async () => {
    let startCount = 0
    const startWorker: SimProgram['startWorker'] = (flags) => {
      startCount++
      const worker = fakeWorker(flags)
      return { ...worker, run: (seed) => (seed === 2 ? Promise.reject(new Error('out of memory')) : worker.run(seed)) }
    }
    const { code, out } = await sim('--seeds 4 --from 1 --workers 1', { startWorker })
    expect(code).toBe(1)
    expect(startCount).toBe(2)
    expect(out).toContain('seed 2  no result: out of memory\n')
    expect(out).toContain('Run it alone:\nReplay:  npm run sim -- --seed 2\n')
    expect(out).not.toContain('shrinking')
  })

  it('explains wrong flags and files with exit code 2, and prints its usage with --help', async () => {
    expect(await sim('--sed 1')).toMatchObject({ code: 2, out: expect.stringContaining("Unknown option '--sed'.") })
    expect(await sim('--help')).toMatchObject({ code: 0, out: expect.stringContaining('Usage: npm run sim') })
    expect(await sim('--plan nowhere.json')).toMatchObject({
      code: 2,
      out: expect.stringContaining('Cannot read plan'),
    })
    await writeFile(join(dir, 'odd'), '{}')
    expect(await sim(`--plan ${dir}/odd`)).toMatchObject({
      code: 2,
      out: expect.stringContaining('has no plan: expected'),
    })
    await writeFile(join(dir, 'odd'), '{')
    expect(await sim(`--plan ${dir}/odd`)).toMatchObject({ code: 2, out: expect.stringContaining('is not JSON') })
  })
})

async function sim(line: string, overrides: Partial<SimProgram> = {}): Promise<{ code: number; out: string }> {
  let out = ''
  const print = (text: string) => {
    out += text
  }
  return { code: await simulate(line.split(' '), programWith({ print, ...overrides })), out }
}

function programWith(overrides: Partial<SimProgram>): SimProgram {
  return {
    generatePlan: fakePlan,
    run: async (plan) => fakeRun(plan),
    clock: manualClock(),
    cores: 2,
    regressionsDir: dir,
    startWorker: fakeWorker,
    print: () => {},
    progress: () => {},
    ...overrides,
  }
}

function fakeWorker(flags: readonly string[]) {
  const command = readFlags(flags, { cores: 1 })
  if (command.do !== 'many') throw new Error('not flags of a worker')
  const program = { generatePlan: fakePlan, run: async (plan: Plan) => fakeRun(plan) }
  return { run: (seed: number) => runSeed(seed, command, program), stop: () => {} }
}

/** A fake run: multiples of 13 leak while their plan has the claim c2, and seed 17 throws. */
function fakeRun(plan: Plan): SimulationRun {
  if (plan.seed === 17) throw new Error('a bug of the simulator')
  const hasC2 = JSON.stringify(plan.steps).includes('"c2"')
  const leak = { atMs: 3_600_000, rule: 'leak', text: `claim team-a/c2 of seed ${plan.seed} leaks` }
  return {
    plan,
    violations: plan.seed % 13 === 0 && hasC2 && plan.seed > 0 ? [leak] : [],
    trace: [],
    fingerprint: 1,
    virtualMs: 3_600_000,
    operations: { 'create claim: sent': plan.steps.length, 'create claim: done': plan.steps.length },
    faults: { crash: 1 },
  }
}

function fakePlan(seed: number, { operations = 8 } = {}): Plan {
  return {
    seed,
    minutes: 60,
    setup: {
      nodes: 2,
      controlReplicas: 1,
      driverControllers: 'in-process',
      commits: 'atomic',
      capacityReservation: false,
      expansionQuota: 'high-water-mark',
      netExpandsWithoutNode: false,
    },
    faultRates: { network: {}, diskErrors: 0, drivers: {}, crashes: {} },
    steps: Array.from({ length: operations }, (_, index) => ({
      atMs: index * 1_000,
      action: { do: 'create', kind: 'claim', object: { metadata: { namespace: 'team-a', name: `c${index}` } } },
    })),
  }
}
