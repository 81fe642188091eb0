// Scenario: pods with local volumes come and go on nodes that get lost and come back, while reports are late or wrong and
// everything fails that can: network, disk, driver, and any process at any await. Then all faults end.
// Promise: on the way no pod is placed away from its volumes; once it is quiet no pool is over-full, nothing has leaked,
// every pod has a node or says why not, none waits for room that is there, and unrelated changes make nobody think.
import type { Client } from '../../client/index.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import type { Scheduler } from '../../scheduler/index.ts'
import { answerTo } from '../answer.ts'
import { createCourt } from '../checkers/conviction.ts'
import { checkPlacements, problemsOf } from '../checkers/scheduling.ts'
import { createSchedulingView } from '../checkers/scheduling-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import { createWorld, type World } from '../world.ts'
import { beginBadDay, beginDying, crashesOf } from './bad-day.ts'
import { createClass, createDriver, createNode, poolOf } from './scheduling-objects.ts'
import { createSchedulingPeople } from './scheduling-people.ts'
import { runClaimControllers, runScheduler, runStorage } from './scheduling-processes.ts'
import { untilQuiet } from './until-quiet.ts'

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
/** Half as bad as elsewhere: it is a short day. */
const WORST = {
  network: {
    latencyMs: 200,
    loseRequest: 0.03,
    loseReply: 0.03,
    duplicate: 0.03,
    refuse: 0.05,
    breakWatch: 0.03,
    silenceWatch: 0.005,
  },
  disk: 0.03,
  driver: { latencyMs: 500, loseRequest: 0.05, loseReply: 0.1, refuse: 0.1, slow: 0.1 },
}
const MINUTE_MS = 60_000
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

  await answerTo(world, prepare(cluster.direct()!), 'the cluster')

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
  const day = { dice, cluster, driver, mortals: processes }
  beginBadDay(day, WORST)
  beginDying(day, { hangs: false })

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
  await answerTo(world, people.restore(cluster.direct()!), 'the nodes')
  const copiesOf = (className: string) => CLASSES[className]?.copies ?? 1
  const quiet = { view, driver, classNames, copiesOf, poolOf: (node: string) => `pool-${node}` }
  await untilQuiet(world, {
    court,
    problems: allProblems,
    happened: () => view.changedMs + driver.record.calls.length + (scheduler?.reservations ?? 0),
    changedMs: () => view.changedMs,
  })
  await ignoreUnrelated()
  for (const { volume } of driver.record.overlaps) court.convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  const crashes = crashesOf([cluster.server, driver.process, ...processes])
  const waiting = [...view.pods.values()].filter(({ spec }) => !spec?.nodeName).length
  return { world, acts, crashes, placed, waiting, made: driver.state().sequence }

  async function prepare(client: Client): Promise<void> {
    await createDriver(client, driver.settings.name)
    for (const [name, { copies, policy }] of Object.entries(CLASSES)) {
      const annotations = policy ? { 'scheduling.stowage.dev/capacity': policy } : {}
      const parameters = { copies: String(copies) }
      await createClass(client, name, driver.settings.name, { metadata: { name, annotations }, parameters })
    }
    for (const node of NODES) await createNode(client, node, driver.settings.name)
  }

  function removePodsOfLostNodes(): void {
    world.schedule(dice() * REMOVED_MS_MAX, () => {
      const client = cluster.direct()
      if (client) void people.removeStranded(client).catch(() => {})
    })
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
    await answerTo(world, people.changeUnrelated(cluster.direct()!), 'unrelated changes')
    await world.runFor(UNRELATED_MS)
    const more = (scheduler?.attempts ?? 0) - (before ?? 0)
    if (more > 0) court.convict(`unrelated changes caused ${more} attempts`)
  }
}

const textOf = ({ metadata: { name, uid }, spec, status }: { metadata: any; spec?: any; status?: any }): string =>
  JSON.stringify({ name, uid, node: spec?.nodeName, volumes: spec?.volumes, conditions: status?.conditions })
