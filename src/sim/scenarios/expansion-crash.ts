// Scenario: claims grow, grow too far and come back, in a world where nothing goes wrong, except one thing at one moment:
// right before or right after one effect (../effects.ts), one process dies, to be started again a while later.
// Promise: in the end everything is as it would have been, and on the way no rule was broken.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { answerTo } from '../answer.ts'
import { bytesOf, checkExpansion, type ExpansionChecker } from '../checkers/expansion.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import type { SimProcess } from '../process.ts'
import { createWorld } from '../world.ts'
import { boundClaims, gi, handleOf, runExpander, runGrowingNode } from './expansion-world.ts'
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

const SEED = 5
const END_MS_MAX = 1_200_000
/** Without anything to compare with: longer than a size that was refused waits. */
const UNDISTURBED_MS = 600_000
const MAXIMUM_GI = 12
const SLOW_SIZE = '6Gi'

export async function expansionCrash(mode: Mode, crash?: Crash): Promise<CrashRun> {
  const { at, expected } = crash ?? {}
  const world = createWorld(SEED)
  const cluster = await createCluster(world, undefined, { expansionQuota: 'actual' })
  const pools = [{ name: 'pool', capacityBytes: gi(1_000) }]
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools, maximumBytes: gi(MAXIMUM_GI) }))
  const court = courtOf(world, mode, at)
  const rules = { cluster, driver, followsRealSize: true, maximumBytes: gi(MAXIMUM_GI), convict: court.convict }
  const checker = checkExpansion(rules)
  // About one, every answer is lost until its user has lowered it; of another the node fails at first.
  let hasFailed = false
  driver.script.match = (method, [id = '']) => {
    if (method === 'ControllerExpandVolume' && id === handleOf('slow') && requestOf('slow') === SLOW_SIZE)
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (method !== 'NodeExpandVolume' || id !== handleOf('twice') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }
  const requestOf = (name: string): string | undefined => checker.claim(name)?.spec.resources.requests.storage

  const processes: Record<string, SimProcess> = {}
  const effects = deadlyEffects({ world, cluster, driver, processes }, at)

  const inMode = inModeOf(mode)
  const stories = storiesOf(checker, driver)
  const prepared = boundClaims(cluster.direct()!, driver, Object.keys(stories), '500Gi')
  await answerTo(world, prepared, 'claims and volumes')
  processes.expander = cluster.add('expander', (env, client) => {
    const csi = checker.witness(effects.driverOf(env, driver.driverFor(env)))
    void runExpander(env, { client: inMode(effects.clientOf(env, client)), chatter: client }, csi)
  })
  processes.node = cluster.add('node', (env, client) => {
    const csi = effects.driverOf(env, driver.driverFor(env))
    runGrowingNode(env, { client: effects.clientOf(env, client), chatter: client }, csi, driver.settings.name)
  })

  const isTold = () => Object.values(stories).every((steps) => steps.length === 0)
  for (const [name, steps] of Object.entries(stories)) follow(name, steps)

  /** One user: asks for the next size as soon as it is time, and again until the claim says so. */
  function follow(name: string, steps: Step[]): void {
    if (steps[0] && requestOf(name) === steps[0].size) steps.shift()
    const [step] = steps
    if (!step) return
    const client = cluster.direct()
    if (client && step.isDue()) {
      const body = { spec: { resources: { requests: { storage: step.size } } } }
      const ref = { namespace: 'default', name }
      void client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }).catch(() => {})
    }
    world.schedule(LOOK_MS, () => follow(name, steps))
  }

  const end = () => endState(checker, driver)
  await untilTheEnd(world, {
    court,
    expected,
    end,
    isTold,
    untold: () => Object.entries(stories).flatMap(([name, steps]) => steps.map(({ size }) => `${name} ${size}`)),
    changed: () => checker.changes,
    endMsMax: END_MS_MAX,
    undisturbedMs: UNDISTURBED_MS,
  })
  for (const { volume } of driver.record.overlaps) court.convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  return { effects: effects.all.map(({ by, what }) => `${by}: ${what}`), end: end(), steps: world.steps }
}

interface Step {
  readonly size: string
  isDue(): boolean
}

/** By claim, the sizes its user asks for, and when. */
function storiesOf(checker: ExpansionChecker, driver: SimDriver): Record<string, Step[]> {
  const stateOf = (name: string) => checker.claim(name)?.status?.allocatedResourceStatuses?.storage
  const capacityOf = (name: string) => bytesOf(checker.claim(name)?.status?.capacity?.storage)
  const atOnce = (size: string): Step => ({ size, isDue: () => true })
  const onceRefused = (name: string, size: string): Step => ({
    size,
    isDue: () => stateOf(name) === 'ControllerResizeInfeasible',
  })
  const onceGrown = (name: string, bytes: number, size: string): Step => ({
    size,
    isDue: () => capacityOf(name) >= bytes && stateOf(name) === undefined,
  })
  const onceAsked = (name: string, size: string): Step => ({
    size,
    isDue: () =>
      driver.record.calls.some(
        ({ method, volume }) => method === 'ControllerExpandVolume' && volume === handleOf(name),
      ),
  })
  return {
    plain: [atOnce('3Gi')],
    twice: [atOnce('3Gi'), onceGrown('twice', gi(3), '5Gi')],
    brave: [atOnce('50Gi'), onceRefused('brave', '2Gi')], // case 1
    again: [atOnce('50Gi'), onceRefused('again', '2Gi'), onceGrown('again', gi(2), '60Gi')], // case 2
    slow: [atOnce(SLOW_SIZE), onceAsked('slow', '2Gi')], // case 3
    timid: [atOnce('50Gi'), onceRefused('timid', '1Gi')], // cancelled
  }
}

function endState({ claims, volumes }: ExpansionChecker, driver: SimDriver): string {
  const objects = [...claims.values(), ...volumes.values()].map(({ metadata, spec, status }) => {
    const { name, annotations = {} } = metadata
    const { claimRef: _ref, ...rest } = spec
    const said = (status?.conditions ?? []).map(({ type, message = '' }: Said) => `${type}: ${message}`)
    return JSON.stringify({ name, annotations, spec: rest, status: { ...status, conditions: said.sort() } })
  })
  const held = Object.values(driver.state().volumes).map(
    ({ id, capacityBytes, onNodes }) =>
      `in the driver: ${id}, ${capacityBytes / gi(1)}Gi, file system ${Object.values(onNodes)[0]!.fileSystemBytes / gi(1)}Gi`,
  )
  return [...objects, ...held].sort().join('\n')
}

interface Said {
  readonly type: string
  readonly message?: string
}
