// Scenario: users write, a watched cache follows through everything that can go wrong, for hours.
// Promise: once the world is quiet, the cache holds exactly what the server does, and on the way it never told its
// subscribers anything twice, backwards or about an object they had not heard of.

import type { KubeObject } from '../../api/kind.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { type Cache, createCache } from '../../runtime/index.ts'
import { answerTo } from '../answer.ts'
import { createCluster } from '../cluster.ts'
import { createWorld, type World } from '../world.ts'

export interface CacheRun {
  readonly world: World
  readonly writes: number
  readonly refused: number
  readonly crashes: number
  readonly relists: number
}

const HOUR_MS = 3_600_000
const NAMES = 30

export async function cacheFollows(seed: number, { hours = 2 } = {}): Promise<CacheRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const cluster = await createCluster(world, { keepMs: 120_000, entriesMax: 40 })
  let cache: Cache<KubeObject> | undefined
  const follower = cluster.add('follower', (env, client) => {
    const own = createCache({ client, kind: configMapKind as never, clock: env.clock, random: env.random })
    own.subscribe(orderChecker(world, env.name))
    cache = own
    void own.run(env.signal)
  })

  // Every seed is another kind of bad day.
  Object.assign(cluster.network.faults, {
    latencyMs: 1 + dice() * 400,
    loseRequest: dice() * 0.1,
    loseReply: dice() * 0.1,
    duplicate: dice() * 0.1,
    refuse: dice() * 0.2,
    breakWatch: dice() * 0.1,
    silenceWatch: dice() * 0.02,
  })
  cluster.disk.faults.refuse = dice() * 0.05
  follower.crashRate = dice() * 0.002

  let writes = 0
  let refused = 0
  const untilMs = world.nowMs + hours * HOUR_MS
  while (world.nowMs < untilMs) {
    await world.runFor(dice() * dice() * 300_000) // bursts and pauses
    if (dice() < 0.02) cluster.server.crash()
    if (dice() < 0.3) cluster.server.start()
    if (dice() < 0.3) follower.start()
    const client = cluster.direct()
    if (!client) continue
    const burst = Math.floor(dice() * 12)
    for (let i = 0; i < burst; i++) {
      void write(client).then(
        () => writes++,
        () => refused++,
      )
    }
  }
  await cluster.heal()
  await settle()
  return {
    world,
    writes,
    refused,
    crashes: cluster.server.starts + follower.starts - 2,
    relists: cache?.stats().relists ?? 0,
  }

  function write(client: NonNullable<ReturnType<typeof cluster.direct>>): Promise<unknown> {
    const ref = { namespace: 'default', name: `c${Math.floor(dice() * NAMES)}` }
    const roll = dice()
    world.note(`user ${roll < 0.3 ? 'deletes' : 'writes'} ${ref.name}`)
    if (roll < 0.3) return client.delete(configMapKind, ref)
    const data = { value: String(dice()) }
    if (roll < 0.6) return client.create(configMapKind, { metadata: ref, data })
    return client.patch(configMapKind, ref, { type: 'merge', body: { data } })
  }

  /** Quiet: the follower has caught up with a last write. */
  async function settle(): Promise<void> {
    const client = cluster.direct()!
    let last: Readonly<KubeObject> | undefined
    void client.create(configMapKind, { metadata: { namespace: 'default', generateName: 'last-' } }).then((object) => {
      last = object
    })
    await world.runUntil(
      () => last !== undefined && cache?.get({ namespace: 'default', name: last.metadata.name! }) !== undefined,
      { withinMs: 10 * 60_000, waitingFor: 'the cache to see the last write' },
    )
    const { items } = await answerTo(world, client.list(configMapKind), 'a list')
    expectSame(world, cache!.list(), items)
  }
}

function expectSame(
  world: World,
  cached: readonly Readonly<KubeObject>[],
  listed: readonly Readonly<KubeObject>[],
): void {
  const describe = (objects: readonly Readonly<KubeObject>[]) =>
    objects
      .map(
        ({ metadata, ...rest }) =>
          `${metadata.name}@${metadata.resourceVersion} ${JSON.stringify((rest as { data?: object }).data)}`,
      )
      .sort()
      .join('\n')
  const [have, want] = [describe(cached), describe(listed)]
  if (have !== want)
    throw new Error(
      `seed ${world.seed}: the cache has\n${have}\nand the server\n${want}\n${world.trace().slice(-80).join('\n')}`,
    )
}

/** What a subscriber may be told: an object once, then its changes forward, then its end. */
function orderChecker(world: World, who: string) {
  const known = new Map<string, { uid: string; version: number }>()
  const wrong = (what: string) => {
    throw new Error(`seed ${world.seed}: ${who} was told ${what}\n${world.trace().slice(-80).join('\n')}`)
  }
  const facts = ({ metadata }: Readonly<KubeObject>) => ({
    name: metadata.name!,
    uid: metadata.uid!,
    version: Number(metadata.resourceVersion),
  })

  const guarded = (run: () => void) => {
    try {
      run()
    } catch (error) {
      world.schedule(0, () => {
        throw error
      })
    }
  }
  return {
    added: (object: Readonly<KubeObject>) =>
      guarded(() => {
        const { name, uid, version } = facts(object)
        if (known.has(name)) wrong(`of ${name} as new though it was there`)
        known.set(name, { uid, version })
      }),
    updated: (next: Readonly<KubeObject>) =>
      guarded(() => {
        const { name, uid, version } = facts(next)
        const before = known.get(name)
        if (!before || before.uid !== uid) return wrong(`of a change of ${name}, which it did not know`)
        if (version <= before.version) wrong(`of ${name}@${version} after @${before.version}`)
        known.set(name, { uid, version })
      }),
    deleted: (object: Readonly<KubeObject>) =>
      guarded(() => {
        const { name } = facts(object)
        if (!known.delete(name)) wrong(`of the end of ${name}, which it did not know`)
      }),
  }
}
