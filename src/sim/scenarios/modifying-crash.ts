// Scenario: classes, amounts and sizes of claims change, are refused and taken back, in a world where nothing goes wrong,
// except one thing at one moment: right before or right after one effect (../effects.ts), one process dies, to be
// started again a while later.
// Promise: in the end everything is as it would have been, in the driver, on volumes, claims and quotas, no event has
// told an untruth, and on the way no rule was broken.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { answerTo } from '../answer.ts'
import { checkExpansion } from '../checkers/expansion.ts'
import { ATTRIBUTES, checkModifying, UNDO } from '../checkers/modifying.ts'
import { createQuotaChecker, followQuotas } from '../checkers/quota.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import type { SimProcess } from '../process.ts'
import { createWorld } from '../world.ts'
import { gi, handleOf, runGrowingNode } from './expansion-world.ts'
import { CLASSES, createClass, modifiableClaims, runChanger, WORKERS } from './modifying-world.ts'
import {
  type Crash,
  type CrashRun,
  courtOf,
  deadlyEffects,
  inModeOf,
  LOOK_MS,
  type Mode,
  untilTheEnd,
} from './one-death.ts'

const SEED = 6
const END_MS_MAX = 1_200_000
/** Without anything to compare with: longer than attributes that were refused wait. */
const UNDISTURBED_MS = 400_000
const MAXIMUM_GI = 12

export interface ModifyingCrashRun extends CrashRun {
  /** By claim, what events said. */
  readonly told: Readonly<Record<string, readonly string[]>>
}

export async function modifyingCrash(mode: Mode, crash?: Crash): Promise<ModifyingCrashRun> {
  const { at, expected } = crash ?? {}
  const world = createWorld(SEED)
  const cluster = await createCluster(world, undefined, { expansionQuota: 'actual' })
  const pools = [{ name: 'pool', capacityBytes: gi(1_000) }]
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools, maximumBytes: gi(MAXIMUM_GI) }))
  const court = courtOf(world, mode, at)
  const { convict } = court
  const growth = checkExpansion({ cluster, driver, followsRealSize: true, maximumBytes: gi(MAXIMUM_GI), convict })
  const knownKeys = driver.settings.mutableKeys
  const checker = checkModifying({ cluster, driver, classes: CLASSES, knownKeys, workers: WORKERS, convict })
  const quotas = createQuotaChecker('default', convict)
  followQuotas(cluster, quotas)

  const isAsked = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'ControllerModifyVolume' && volume === handleOf(name))
  const stories = storiesOf(growth.claim, isAsked, mode === 'transactions')
  const names = Object.keys(stories)
  // About one every answer is lost until its user has taken it back; of another the driver fails at first.
  let hasFailed = false
  driver.script.match = (method, [id = '']) => {
    if (method !== 'ControllerModifyVolume') return undefined
    if (id === handleOf('undone') && growth.claim('undone')?.spec.volumeAttributesClassName === 'gold')
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (id !== handleOf('plain') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }

  const processes: Record<string, SimProcess> = {}
  const effects = deadlyEffects({ world, cluster, driver, processes }, at)

  const inMode = inModeOf(mode)
  const classes = Object.keys(CLASSES).filter((name) => name !== 'late')
  const prepared = modifiableClaims(cluster.direct()!, driver, { names, silver: names, classes, goldMax: 10 })
  await answerTo(world, prepared, 'claims, classes and volumes')
  processes.changer = cluster.add('changer', (env, client) => {
    const csi = checker.witness(growth.witness(effects.driverOf(env, driver.driverFor(env))))
    void runChanger(env, { client: inMode(effects.clientOf(env, client)), chatter: client }, csi)
  })
  processes.node = cluster.add('node', (env, client) => {
    const csi = effects.driverOf(env, driver.driverFor(env))
    runGrowingNode(env, { client: effects.clientOf(env, client), chatter: client }, csi, driver.settings.name)
  })

  const isTold = () => isLateMade && Object.values(stories).every((steps) => steps.length === 0)
  let isLateMade = false
  for (const [name, steps] of Object.entries(stories)) follow(name, steps)
  administer()

  /** One user: asks for the next thing as soon as it is time, and again until the claim says so. */
  function follow(name: string, steps: Step[]): void {
    if (steps[0] && isIn(growth.claim(name)?.spec, steps[0].wish)) steps.shift()
    const [step] = steps
    if (!step) return
    const client = cluster.direct()
    if (client && step.isDue()) {
      const body = { spec: step.wish }
      const ref = { namespace: 'default', name }
      void client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }).catch(() => {})
    }
    world.schedule(LOOK_MS, () => follow(name, steps))
  }

  /** Makes the class that someone waits for. */
  function administer(): void {
    if (isLateMade) return
    const client = cluster.direct()
    if (client && growth.claim('patient')?.status?.modifyVolumeStatus?.status === 'Pending') {
      const isThere = (error: { code?: number }) => error.code === 409
      createClass(client, driver, 'late').then(
        () => {
          isLateMade = true
        },
        (error) => {
          isLateMade ||= isThere(error)
        },
      )
    }
    world.schedule(LOOK_MS, administer)
  }

  function end(): string {
    const objects = [...growth.claims.values(), ...growth.volumes.values()].map(({ metadata, spec, status }) => {
      const { name } = metadata
      // What is noted about the way depends on the way: whether it is true is for the checker.
      const { [UNDO]: _undo, [ATTRIBUTES]: _attributes, ...annotations } = metadata.annotations ?? {}
      const { claimRef: _ref, ...rest } = spec
      const said = (status?.conditions ?? []).map(({ type, message = '' }: Said) => `${type}: ${message}`)
      return JSON.stringify({ name, annotations, spec: rest, status: { ...status, conditions: said.sort() } })
    })
    const used = [...quotas.quotas].map(([name, { status }]) => `quota ${name}: ${JSON.stringify(status?.used)}`)
    const held = Object.values(driver.state().volumes).map(({ id, capacityBytes, mutableParameters }) => {
      const attributes = Object.entries(mutableParameters).sort().flat().join(' ')
      return `in the driver: ${id}, ${capacityBytes / gi(1)}Gi, ${attributes}`
    })
    return [...objects, ...used, ...held].sort().join('\n')
  }

  await untilTheEnd(world, {
    court,
    expected,
    end,
    isTold,
    changed: () => growth.changes + checker.heard,
    isDone: () => checker.problems().length === 0,
    endMsMax: END_MS_MAX,
    undisturbedMs: UNDISTURBED_MS,
  })
  for (const problem of [...growth.problems(), ...checker.problems()]) convict(problem)
  for (const { volume } of driver.record.overlaps) convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  return {
    effects: effects.all.map(({ by, what }) => `${by}: ${what}`),
    end: end(),
    steps: world.steps,
    told: Object.fromEntries(names.map((name) => [name, checker.told(name)])),
  }
}

interface Step {
  /** What one edit puts into the claim's spec. */
  readonly wish: object
  isDue(): boolean
}

/** By claim, what its user asks for, and when. All begin with the class silver. A server without transactions takes no amounts. */
function storiesOf(
  claim: (name: string) => any,
  isAsked: (name: string) => boolean,
  withAmounts: boolean,
): Record<string, Step[]> {
  const classed = (volumeAttributesClassName: string) => ({ volumeAttributesClassName })
  const amounts = (requests: object) => ({ resources: { requests } })
  const atOnce = (wish: object): Step => ({ wish, isDue: () => true })
  const once = (name: string, isTime: (status: any) => boolean, wish: object): Step => ({
    wish,
    isDue: () => isTime(claim(name)?.status ?? {}),
  })
  return {
    plain: [atOnce(classed('gold'))],
    undone: [atOnce(classed('gold')), { wish: classed('silver'), isDue: () => isAsked('undone') }],
    refused: [
      atOnce(classed('odd')),
      once('refused', ({ modifyVolumeStatus }) => modifyVolumeStatus?.status === 'Infeasible', classed('silver')),
    ],
    stubborn: [atOnce(classed('odd'))],
    patient: [atOnce(classed('late'))],
    larger: [atOnce({ ...classed('gold'), ...amounts({ storage: '3Gi' }) })],
    ...(withAmounts
      ? {
          fast: [
            atOnce(amounts({ throughput: '20Mi' })),
            once('fast', ({ capacity }) => capacity?.throughput === '20Mi', amounts({ throughput: '10Mi' })),
          ],
          both: [atOnce({ ...classed('bronze'), ...amounts({ iops: '700', throughput: '20Mi' }) })],
          all: [atOnce({ ...classed('gold'), ...amounts({ storage: '3Gi', throughput: '30Mi' }) })],
        }
      : {}),
  }
}

const isIn = (whole: any, part: any): boolean =>
  typeof part === 'object'
    ? Object.entries(part).every(([key, value]) => isIn(whole?.[key], value))
    : String(whole) === String(part)

interface Said {
  readonly type: string
  readonly message?: string
}
