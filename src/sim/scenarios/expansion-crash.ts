// Scenario: claims grow, grow too far and come back, in a world where nothing goes wrong, except one thing at one moment:
// right before or right after one effect (../effects.ts), one process dies, to be started again a while later.
// Promise: in the end everything is as it would have been, and on the way no rule was broken.
import { persistentVolumeClaimKind } from '../../api/kinds/claim.ts'
import type { Client } from '../../client/index.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { createCourt } from '../checkers/conviction.ts'
import { bytesOf, checkExpansion, type ExpansionChecker } from '../checkers/expansion.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import { createEffects, type Effect } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import type { SimProcess } from '../process.ts'
import { createWorld } from '../world.ts'
import { boundClaims, gi, handleOf, runExpander, runGrowingNode } from './expansion-world.ts'
import { type CrashPoint, type CrashRun, MODES } from './provisioning-crash.ts'

export { MODES }

const SEED = 5
const DOWN_MS = 3_000
const LOOK_MS = 50
const END_MS_MAX = 1_200_000
/** What is as it should be must stay so. */
const STAYS_MS = 10_000
/** Without anything to compare with: longer than a size that was refused waits. */
const UNDISTURBED_MS = 600_000
const MAXIMUM_GI = 12
const SLOW_SIZE = '6Gi'

export async function expansionCrash(
  mode: (typeof MODES)[number],
  crash?: { readonly at: CrashPoint; readonly expected: string },
): Promise<CrashRun> {
  const { at, expected } = crash ?? {}
  const world = createWorld(SEED)
  const cluster = await createCluster(world, undefined, { expansionQuota: 'actual' })
  const pools = [{ name: 'pool', capacityBytes: gi(1_000) }]
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools, maximumBytes: gi(MAXIMUM_GI) }))
  const court = createCourt(world, at ? `CRASH_POINT='${mode}, ${at.effect} ${at.when} ${at.victim}'` : mode)
  const rules = { cluster, driver, followsRealSize: true, maximumBytes: gi(MAXIMUM_GI), convict: court.convict }
  const checker = checkExpansion(rules)
  // About one, every answer is lost until its user has lowered it; of another the node fails at first.
  let hasFailed = false
  driver.script.take = (method, [id = '']) => {
    if (method === 'ControllerExpandVolume' && id === handleOf('slow') && requestOf('slow') === SLOW_SIZE)
      return { effect: { do: 'loseReply', as: 'unavailable' } }
    if (method !== 'NodeExpandVolume' || id !== handleOf('twice') || hasFailed) return undefined
    hasFailed = true
    return { effect: { do: 'fail', code: 'INTERNAL' } }
  }
  const requestOf = (name: string): string | undefined => checker.claim(name)?.spec.resources.requests.storage

  const processes: Record<string, SimProcess> = {}
  const effects = createEffects(
    {
      before: (effect) => isStruck(effect, 'before') && void kill(effect),
      after: (effect) => (isStruck(effect, 'after') ? kill(effect) : 'answered'),
    },
    ({ number, by, what }) => world.note(`${number} ${by}: ${what}`),
  )
  const isStruck = ({ number }: Effect, when: CrashPoint['when']) => at?.effect === number && at.when === when

  /** An answer that the victim had yet to send is lost. */
  function kill({ by, on }: Effect): 'answered' | 'answer lost' {
    const { victim } = at!
    const process = { process: processes[by]!, server: cluster.server, driver: driver.process }[victim]
    process.crash()
    world.schedule(DOWN_MS, () => process.start())
    return victim === on ? 'answer lost' : 'answered'
  }

  const inMode = mode === 'transactions' ? (client: Client) => client : oneByOne
  let isPrepared = false
  const stories = storiesOf(checker, driver)
  void boundClaims(cluster.direct()!, driver, Object.keys(stories), '500Gi').then(() => {
    isPrepared = true
  })
  await world.runUntil(() => isPrepared, { withinMs: 60_000, waitingFor: 'claims and volumes' })
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
  if (expected === undefined) {
    await world.runUntil(isTold, { withinMs: END_MS_MAX, waitingFor: 'the end of the stories' })
    await world.runFor(UNDISTURBED_MS)
  } else {
    let looked = -1
    const isAsExpected = () => {
      if (checker.changes === looked || !isTold()) return false
      looked = checker.changes
      return end() === expected
    }
    try {
      await world.runUntil(isAsExpected, { withinMs: END_MS_MAX, waitingFor: 'the end that was expected' })
    } catch (error) {
      const untold = Object.entries(stories).flatMap(([name, steps]) => steps.map(({ size }) => `${name} ${size}`))
      if (untold.length > 0) court.convict(`nobody could ask for ${untold.join(', ')}`)
      court.convict(`it ends with\n${end()}\ninstead of\n${expected}\n(${(error as Error).message.split('\n')[0]})`)
    }
    await world.runFor(STAYS_MS)
    if (end() !== expected) court.convict(`it does not stay as it should be:\n${end()}`)
  }
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
