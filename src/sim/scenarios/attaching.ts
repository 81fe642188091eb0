// Scenario: pods come and go on three nodes and fight over volumes, nodes lose their power, and everything else goes wrong
// that can: network, disk, driver, and the attaching processes at any await. Then all faults end.
// Promise: on the way no volume of one node is asked for on a second one, and none is mounted where it is not published;
// once it is quiet every volume is where its pods are, and nothing is published that no attachment stands for.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createAttacher, createAttachingControllers } from '../../controllers/attaching/index.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { type CsiDriver, CsiError, driverFacts } from '../../csi/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { answerTo } from '../answer.ts'
import { watchPublishes } from '../checkers/attachments.ts'
import { createCourt } from '../checkers/conviction.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import type { Env, SimProcess } from '../process.ts'
import { createWorld, type World } from '../world.ts'
import { createSimNode, handleOf, nodeIdOf } from './attaching-nodes.ts'
import { beginBadDay, beginDying, crashesOf, passSomeTime, WORST_DRIVER, WORST_NETWORK } from './bad-day.ts'

export interface AttachingRun {
  readonly world: World
  readonly effects: number
  readonly crashes: number
  readonly publishes: number
  readonly powerCuts: number
}

const MINUTE_MS = 60_000
const HEAL_MS_MAX = 60 * MINUTE_MS
const NODES = ['n1', 'n2', 'n3']
const VOLUMES: Readonly<Record<string, string>> = { a: 'ReadWriteOnce', b: 'ReadWriteOncePod', c: 'ReadWriteMany' }
const PODS_MAX = 6

export async function attaching(seed: number, { minutes = 20 } = {}): Promise<AttachingRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const cluster = await createCluster(world, { keepMs: 120_000, entriesMax: 200 })
  const settings = fakeSettings({ nodes: NODES.map((name) => ({ id: nodeIdOf(name) })) })
  const driver = createSimDriver(world, 'driver', settings)
  const court = createCourt(world)
  const effects = createEffects({}, ({ by, what }) => world.note(`${by}: ${what}`))
  await answerTo(world, prepare(cluster.direct()!), 'volumes and claims')
  const nodes = NODES.map((name) => createSimNode(name, cluster, driver, court.convict))

  const inMode = dice() < 0.5 ? oneByOne : (client: Client) => client
  const processes: SimProcess[] = [
    cluster.add('attaching', (env, client) => runControllers(env, inMode(effects.clientOf(env, client)))),
    cluster.add('attacher', (env, client) => {
      const watched = watchPublishes(driver.driverFor(env), driver, court.convict)
      void runAttacher(env, inMode(effects.clientOf(env, client)), effects.driverOf(env, watched))
    }),
  ]
  const day = { dice, cluster, driver, mortals: processes }
  const network = { ...WORST_NETWORK, latencyMs: 50 }
  beginBadDay(day, { network, driver: { ...WORST_DRIVER, latencyMs: undefined }, slowMs: 40_000 })
  beginDying(day, { hangs: false })

  let powerCuts = 0
  let podsMade = 0
  const pods: { readonly name: string; readonly node: string; readonly claim: string }[] = []
  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await passSomeTime(day, processes)
    if (dice() < 0.05) cutPower()
    for (const node of nodes) if (dice() < 0.1) node.start()
    const client = cluster.direct()
    if (client && dice() < 0.6) void changePods(client).catch(() => {})
  }

  await cluster.heal()
  driver.heal()
  for (const node of nodes) node.start()
  await settle()
  court.adjourn()
  const crashes = crashesOf([cluster.server, driver.process, ...processes])
  const publishes = driver.record.calls.filter(({ method }) => method === 'ControllerPublishVolume').length
  return { world, effects: effects.all.length, crashes, publishes, powerCuts }

  function cutPower(): void {
    const node = nodes[Math.floor(dice() * nodes.length)]!
    powerCuts++
    node.losePower()
    // What a watch over nodes would say after a while; sometimes a person knows better.
    world.schedule(40_000, () => void (node.isOn || declareLost(node.name, dice() < 0.3)))
  }

  function declareLost(name: string, isOutOfService: boolean): void {
    const client = cluster.direct()
    if (!client) return
    const status = { conditions: [{ type: 'Ready', status: 'Unknown' }] }
    const patch = { type: 'strategic', body: { status } } as const
    void client.patch(nodeKind, { name }, patch, { subresource: 'status' }).catch(() => {})
    if (!isOutOfService) return
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    void client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { taints } } }).catch(() => {})
  }

  async function changePods(client: Client): Promise<void> {
    const { items: tainted } = await client.list(nodeKind)
    for (const { metadata, spec } of tainted) {
      const isBack = nodes.find(({ name }) => name === metadata.name)?.isOn
      if (!isBack || !spec?.taints) continue
      await client.patch(nodeKind, { name: metadata.name ?? '' }, { type: 'merge', body: { spec: { taints: null } } })
    }
    if (pods.length >= PODS_MAX || (pods.length > 0 && dice() < 0.45)) {
      const [gone] = pods.splice(Math.floor(dice() * pods.length), 1)
      await deletePod(client, gone!.name)
      return
    }
    const pick = (names: readonly string[]) => names[Math.floor(dice() * names.length)]!
    const pod = { name: `pod-${++podsMade}`, node: pick(NODES), claim: pick(Object.keys(VOLUMES)) }
    pods.push(pod)
    await client.create(podKind, {
      metadata: { namespace: 'default', name: pod.name },
      spec: {
        nodeName: pod.node,
        containers: [{ name: 'main', image: 'any' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: pod.claim } }],
      },
    } as never)
  }

  function deletePod(client: Client, name: string) {
    return client.delete(podKind, { namespace: 'default', name }, { gracePeriodSeconds: 0 })
  }

  /** Until all is well, or time is up and it is not. */
  async function settle(): Promise<void> {
    const endMs = world.nowMs + HEAL_MS_MAX
    let problems = ['not looked yet']
    while (problems.length > 0 && world.nowMs < endMs) {
      await world.runFor(MINUTE_MS / 2)
      problems = await answerTo(world, problemsNow(cluster.direct()!), 'a look at the end')
    }
    for (const problem of problems) court.convict(problem)
    await world.runFor(2 * MINUTE_MS)
    const later = await answerTo(world, problemsNow(cluster.direct()!), 'another look')
    for (const problem of later) court.convict(`it does not stay: ${problem}`)
  }

  async function problemsNow(client: Client): Promise<string[]> {
    const present = (await client.list(podKind)).items
    const attachments = (await client.list(volumeAttachmentKind)).items
    return Object.entries(VOLUMES).flatMap(([claim, mode]) => {
      const using = present.filter(({ spec }) => spec?.volumes?.[0]?.persistentVolumeClaim?.claimName === claim)
      const needed = [...new Set(using.map(({ spec }) => spec?.nodeName ?? ''))].sort()
      const of = attachments.filter(({ spec }) => spec.source.persistentVolumeName === claim)
      const attached = of.map(({ spec }) => spec.nodeName).sort()
      const ids = Object.keys(driver.state().volumes[handleOf(claim)]?.attachments ?? {}).sort()
      const isAtRightNodes =
        mode === 'ReadWriteMany' || needed.length === 0
          ? attached.join() === needed.join()
          : attached.length === 1 && needed.includes(attached[0]!)
      return [
        ...(isAtRightNodes ? [] : [`${claim} is needed on [${needed}] and attached to [${attached}]`]),
        ...(ids.join() === attached.map(nodeIdOf).join()
          ? []
          : [`${claim}: attached to [${attached}], published on [${ids}]`]),
        ...of.filter(({ status }) => !status?.attached).map(({ spec }) => `${claim} waits on ${spec.nodeName}`),
      ]
    })
  }

  async function prepare(client: Client): Promise<void> {
    for (const [name, mode] of Object.entries(VOLUMES)) await prepareVolume(client, name, mode)
  }

  async function prepareVolume(client: Client, name: string, mode: string): Promise<void> {
    driver.state().volumes[handleOf(name)] = {
      id: handleOf(name),
      name,
      order: ++driver.state().sequence,
      pool: settings.pools[0]!.name,
      copies: 1,
      capacityBytes: 1024 ** 3,
      createRequest: { capabilities: [], parameters: {}, mutableParameters: {}, source: undefined },
      mutableParameters: {},
      attachments: {},
      onNodes: {},
    }
    const shared = { accessModes: [mode], storageClassName: '' }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name },
      spec: { ...shared, volumeName: name, resources: { requests: { storage: '1Gi' } } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name },
      spec: {
        ...shared,
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
        csi: { driver: settings.name, volumeHandle: handleOf(name) },
      },
    } as never)
    const patch = { type: 'merge', body: { status: { phase: 'Bound' } } } as const
    await client.patch(persistentVolumeKind, { name }, patch, { subresource: 'status' })
    await client.patch(persistentVolumeClaimKind, { namespace: 'default', name }, patch, { subresource: 'status' })
  }
}

function runControllers(env: Env, client: Client): void {
  const { clock, random, signal } = env
  setMaxListeners(0, signal) // every volume in work listens to it
  const caches = createCacheSet({ client, clock, random })
  void createAttachingControllers({ client, caches, clock, random, log: silentLog }).run(signal)
}

async function runAttacher(env: Env, client: Client, driver: CsiDriver): Promise<void> {
  const { clock, random, signal } = env
  setMaxListeners(0, signal)
  const facts = await askFacts(driver, env)
  const caches = createCacheSet({ client, clock, random })
  await createAttacher({ client, caches, clock, random, log: silentLog, driver, facts }).run(signal)
}

/** A real process would end when the driver fails here, and be started again. */
async function askFacts(driver: CsiDriver, { clock, signal }: Env) {
  for (;;) {
    try {
      return await driverFacts(driver, signal)
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      await clock.sleep(1_000)
    }
  }
}
