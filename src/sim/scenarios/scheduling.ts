// Scenario: pods with local volumes come and go on nodes that get lost and come back, while reports are late or wrong and
// everything fails that can: network, disk, driver, and any process at any await. Then all faults end.
// Promise: on the way no pod is placed away from its volumes; once it is quiet no pool is over-full, nothing has leaked,
// every pod has a node or says why not, none waits for room that is there, and unrelated changes make nobody think.
import type { Client } from '../../client/index.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import type { Scheduler } from '../../scheduler/index.ts'
import { createCourt } from '../checkers/conviction.ts'
import { checkPlacements, problemsOf } from '../checkers/scheduling.ts'
import { createSchedulingView } from '../checkers/scheduling-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import { createWorld, type World } from '../world.ts'
import { createClass, createDriver, createNode, poolOf } from './scheduling-objects.ts'
import { createSchedulingPeople } from './scheduling-people.ts'
import { runClaimControllers, runScheduler, runStorage } from './scheduling-processes.ts'

export interface SchedulingRun {
  readonly world: World
  readonly acts: number
  readonly crashes: number
  readonly placed: number
  /** Pods that had no node in the end, and said why. */
  readonly waiting: number
  readonly made: number
}

const NODES = ['n0', 'n1', 'n2']
const POOL_GI = 4
/** Mirrored volumes cost twice their size, in the same pools. */
const CLASSES: Readonly<Record<string, { copies: number; policy?: string }>> = {
  plain: { copies: 1 },
  mirrored: { copies: 2, policy: 'pack' },
}
const MINUTE_MS = 60_000
const HEAL_MS_MAX = 60 * MINUTE_MS
/** After this long without a change, what is wrong stays wrong: no retry is further away. */
const STILL_MS = 15 * MINUTE_MS
/** After this long no pod backs off any more, and no refusal of the driver is remembered. */
const FORGOTTEN_MS = 90_000
const UNRELATED_MS = 5_000
/** Until what people had begun has happened. */
const LAST_ACTS_MS = 5_000
/** How soon pods of a lost node are removed, by whoever does that in a cluster. */
const REMOVED_MS_MAX = 30_000

export async function podsFindVolumes(seed: number, { minutes = 1.5 } = {}): Promise<SchedulingRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const cluster = await createCluster(world, { keepMs: 120_000, entriesMax: 200 })
  const pools = NODES.map((node) => poolOf(node, POOL_GI))
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools }))
  const view = createSchedulingView(cluster)
  const court = createCourt(world, `seed ${seed}`, () => [...view.pods.values()].map(textOf).join('\n'))
  const classNames = Object.keys(CLASSES)
  const people = createSchedulingPeople({ world, view, driver, nodes: NODES, classNames })
  const effects = createEffects({}, ({ by, what }) => world.note(`${by}: ${what}`))
  let placed = 0
  checkPlacements(view, court.convict)
  view.onBound(() => void placed++)

  await answer(async (client) => {
    await createDriver(client, driver.settings.name)
    for (const [name, { copies, policy }] of Object.entries(CLASSES)) {
      const annotations = policy ? { 'scheduling.stowage.dev/capacity': policy } : {}
      const parameters = { copies: String(copies) }
      await createClass(client, name, driver.settings.name, { metadata: { name, annotations }, parameters })
    }
    for (const node of NODES) await createNode(client, node, driver.settings.name)
  }, 'the cluster')

  const inMode = dice() < 0.5 ? oneByOne : (client: Client) => client
  const capacityReservation = dice() < 0.8
  let scheduler: Scheduler | undefined
  const processes = [
    cluster.add('controllers', (env, client) => runClaimControllers(env, inMode(effects.clientOf(env, client)))),
    cluster.add('storage', (env, client) => {
      const csi = effects.driverOf(env, driver.driverFor(env))
      void runStorage(env, inMode(effects.clientOf(env, client)), csi)
    }),
    cluster.add('scheduler', (env, client) => {
      scheduler = runScheduler(env, inMode(effects.clientOf(env, client)), { capacityReservation })
    }),
  ]
  beginBadDay()

  let acts = 0
  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await world.runFor(dice() * dice() * 30_000) // bursts and pauses
    if (dice() < 0.05) cluster.server.crash()
    if (dice() < 0.05) driver.process.crash()
    for (const process of processes) if (dice() < 0.05) process.crash()
    for (const process of [cluster.server, driver.process, ...processes]) if (dice() < 0.5) process.start()
    for (let left = Math.floor(dice() * 5); left > 0; left--) {
      const client = cluster.direct()
      if (!client) break
      acts++
      void people.act(client).catch(() => {})
      removePodsOfLostNodes()
    }
  }

  await cluster.heal()
  driver.heal()
  await world.runFor(LAST_ACTS_MS)
  await answer((client) => people.restore(client), 'the nodes')
  const copiesOf = (className: string) => CLASSES[className]?.copies ?? 1
  const quiet = { view, driver, classNames, copiesOf, poolOf: (node: string) => `pool-${node}` }
  await settle()
  await ignoreUnrelated()
  for (const { volume } of driver.record.overlaps) court.convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  const crashes = [cluster.server, driver.process, ...processes].reduce((sum, { starts }) => sum + starts - 1, 0)
  const waiting = [...view.pods.values()].filter(({ spec }) => !spec?.nodeName).length
  return { world, acts, crashes, placed, waiting, made: driver.state().made }

  /** Every seed is another kind of bad day. */
  function beginBadDay(): void {
    Object.assign(cluster.network.faults, {
      latencyMs: 1 + dice() * 200,
      loseRequest: dice() * 0.03,
      loseReply: dice() * 0.03,
      duplicate: dice() * 0.03,
      refuse: dice() * 0.05,
      breakWatch: dice() * 0.03,
      silenceWatch: dice() * 0.005,
    })
    cluster.disk.faults.refuse = dice() * 0.03
    Object.assign(driver.faults, {
      latencyMs: 1 + dice() * 500,
      loseRequest: dice() * 0.05,
      loseReply: dice() * 0.1,
      refuse: dice() * 0.1,
      slow: dice() * 0.1,
      slowMs: 20_000,
    })
    driver.process.crashRate = dice() * 0.01
    for (const process of processes) process.crashRate = dice() * dice() * 0.01
  }

  function removePodsOfLostNodes(): void {
    world.schedule(dice() * REMOVED_MS_MAX, () => {
      const client = cluster.direct()
      if (client) void people.removeStranded(client).catch(() => {})
    })
  }

  /** Until all is well; or until nothing moves any more, and it is not. */
  async function settle(): Promise<void> {
    let looked = -1
    let problems: string[] = ['not looked yet']
    const state = () => view.changedMs + driver.record.calls.length + (scheduler?.reservations ?? 0)
    const isOver = () => {
      if (state() === looked) return problems.length === 0 || world.nowMs - view.changedMs > STILL_MS
      looked = state()
      problems = allProblems()
      return problems.length === 0
    }
    await world.runUntil(isOver, { withinMs: HEAL_MS_MAX, waitingFor: 'quiet' }).catch((error) => {
      court.convict(`never quiet: ${(error as Error).message.split('\n')[0]}`)
    })
    for (const problem of allProblems()) court.convict(problem)
    court.adjourn()
  }

  function allProblems(): string[] {
    const held = scheduler?.reservations ?? 0
    return [
      ...problemsOf(quiet),
      ...(held > 0 ? [`capacity is held back for ${held} volumes that are not coming`] : []),
    ]
  }

  async function ignoreUnrelated(): Promise<void> {
    await world.runFor(FORGOTTEN_MS)
    const before = scheduler?.attempts
    await answer((client) => people.changeUnrelated(client), 'unrelated changes')
    await world.runFor(UNRELATED_MS)
    const more = (scheduler?.attempts ?? 0) - (before ?? 0)
    if (more > 0) court.convict(`unrelated changes caused ${more} attempts`)
  }

  /** What the server says to requests past the network. */
  async function answer<T>(ask: (client: Client) => Promise<T>, waitingFor: string): Promise<T> {
    let answered: { readonly value: T } | undefined
    let failed: unknown
    void ask(cluster.direct()!).then(
      (value) => {
        answered = { value }
      },
      (error) => {
        failed = error
      },
    )
    const isOver = () => answered !== undefined || failed !== undefined
    await world.runUntil(isOver, { withinMs: MINUTE_MS, waitingFor })
    if (failed) throw failed
    return answered!.value
  }
}

const textOf = ({ metadata: { name, uid }, spec, status }: { metadata: any; spec?: any; status?: any }): string =>
  JSON.stringify({ name, uid, node: spec?.nodeName, volumes: spec?.volumes, conditions: status?.conditions })
