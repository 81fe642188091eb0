// Scenario: people change classes, amounts and sizes of claims and take that back, administrators delete and create
// classes and change quotas, while everything goes wrong that can: network, disk, driver, and any process at any await.
// Then all faults end.
// Promise: on the way nobody is told of attributes that are not there, and every quota is exact; once it is quiet each
// volume has in the driver what its claim's status says, and each claim what it wants, or it says why not.
import { setMaxListeners } from 'node:events'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createProtectionControllers } from '../../controllers/protection/index.ts'
import { type FakeRule, fakeSettings } from '../../csi/fake/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { answerTo } from '../answer.ts'
import { createCourt } from '../checkers/conviction.ts'
import { checkExpansion } from '../checkers/expansion.ts'
import { checkModifying } from '../checkers/modifying.ts'
import { createQuotaChecker, followQuotas } from '../checkers/quota.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import { createWorld, type World } from '../world.ts'
import { beginBadDay, beginDying, crashesOf, passSomeTime, restart, WORST_DRIVER } from './bad-day.ts'
import { DRIVER_ERRORS, gi, runGrowingNode, TELLING_NOTHING } from './expansion-world.ts'
import { CLASSES, createClass, GOLD_QUOTA, modifiableClaims, runChanger, WORKERS } from './modifying-world.ts'
import { untilQuiet } from './until-quiet.ts'

export interface ModifyingRun {
  readonly world: World
  readonly acts: number
  readonly effects: number
  readonly crashes: number
  /** Changes that the driver made and a claim said. */
  readonly settled: number
  /** The driver's answers, how often each. */
  readonly answers: Readonly<Record<string, number>>
}

const MINUTE_MS = 60_000
const NAMES = ['a', 'b', 'c', 'd']
const MAXIMUM_GI = 12

export async function modifyingInABadWorld(seed: number, { minutes = 12 } = {}): Promise<ModifyingRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const roll = (n: number) => Math.floor(dice() * n)
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T
  const cluster = await createCluster(world, { keepMs: 120_000, entriesMax: 200 }, { expansionQuota: 'actual' })
  const pools = [{ name: 'pool', capacityBytes: gi(10_000) }]
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools, maximumBytes: gi(MAXIMUM_GI) }))
  const court = createCourt(world, `seed ${seed}`, () => growth.text())
  const { convict } = court
  const growth = checkExpansion({ cluster, driver, followsRealSize: true, maximumBytes: gi(MAXIMUM_GI), convict })
  const knownKeys = driver.settings.mutableKeys
  const checker = checkModifying({ cluster, driver, classes: CLASSES, knownKeys, workers: WORKERS, convict })
  followQuotas(cluster, createQuotaChecker('default', convict))
  const start = { names: NAMES, silver: ['a', 'b'], classes: Object.keys(CLASSES), goldMax: 2 }
  await answerTo(world, modifiableClaims(cluster.direct()!, driver, start), 'claims, classes and volumes')

  let refusals = 0
  const scripted = driver.script.match
  driver.script.match = (method, volumes) => scripted(method, volumes) ?? refusal(method, volumes)
  const effects = createEffects({}, ({ by, what }) => world.note(`${by}: ${what}`))
  // A server without transactions takes no amounts: there, only classes change.
  const isAtomic = dice() < 0.6
  const inMode = isAtomic ? (client: Client) => client : oneByOne
  const changer = cluster.add('changer', (env, client) => {
    const csi = checker.witness(growth.witness(effects.driverOf(env, driver.driverFor(env))))
    void runChanger(env, { client: inMode(effects.clientOf(env, client)), chatter: client }, csi)
  })
  const node = cluster.add('node', (env, client) => {
    const csi = effects.driverOf(env, driver.driverFor(env))
    runGrowingNode(env, { client: effects.clientOf(env, client), chatter: client }, csi, driver.settings.name)
  })
  const protection = cluster.add('protection', ({ clock, random, signal }, client) => {
    setMaxListeners(0, signal)
    const caches = createCacheSet({ client, clock, random })
    void createProtectionControllers({ client, caches, clock, random, log: silentLog }).run(signal)
  })
  const processes = [changer, node, protection]
  const day = { dice, cluster, driver, mortals: processes }
  beginBadDay(day, { driver: { ...WORST_DRIVER, refuse: undefined } }) // refusal() does that
  refusals = dice() * 0.4
  beginDying(day)

  let acts = 0
  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await passSomeTime(day, processes)
    if (dice() < 0.1) driver.script.release()
    const client = cluster.direct()
    if (!client) continue
    if (dice() < 0.2) void administer(client).catch(() => {})
    for (let left = roll(4); left > 0; left--) {
      acts++
      void act(client).catch(() => {}) // refused, or the server died over it
    }
  }

  await cluster.heal()
  driver.heal()
  refusals = 0
  restart(node) // a driver that refused a volume in use is not asked again before it is mounted anew
  await world.runFor(MINUTE_MS) // what people asked for last is under way
  await settle()
  for (const process of processes) restart(process) // who starts anew leaves it so
  await world.runFor(MINUTE_MS)
  await settle()
  for (const { volume } of driver.record.overlaps) convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  const crashes = crashesOf([cluster.server, driver.process, ...processes])
  const answers: Record<string, number> = {}
  for (const { method, outcome = 'none' } of driver.record.calls)
    if (method === 'ControllerModifyVolume') answers[outcome] = (answers[outcome] ?? 0) + 1
  return { world, acts, effects: effects.all.length, crashes, settled: checker.settled, answers }

  /** One edit of one claim: of its class, its amounts, its size, or all of it. */
  function act(client: Client): Promise<unknown> {
    const name = pick(NAMES)
    const isAll = dice() < 0.15
    const what = roll(10)
    const volumeAttributesClassName =
      dice() < 0.3
        ? (growth.claim(name)?.status?.currentVolumeAttributesClassName ?? null) // takes it back
        : pick([...Object.keys(CLASSES), 'silver', 'gold', 'bronze', null])
    const requests = {
      ...(isAll || what === 0 ? { storage: `${1 + roll(MAXIMUM_GI + 2)}Gi` } : {}),
      ...(isAtomic && (isAll || what === 1 || what === 2) ? { throughput: pick(['10Mi', '20Mi', null]) } : {}),
      ...(isAtomic && (isAll || what === 3) ? { iops: pick(['500', '700', '1000', null, null]) } : {}),
    }
    const spec = {
      ...(isAll || what > 3 ? { volumeAttributesClassName } : {}),
      ...(Object.keys(requests).length > 0 ? { resources: { requests } } : {}),
    }
    world.note(`people: ${name} is to have ${JSON.stringify(spec)}`)
    return client.patch(persistentVolumeClaimKind, { namespace: 'default', name }, { type: 'merge', body: { spec } })
  }

  function administer(client: Client): Promise<unknown> {
    const name = pick(['late', 'bronze', 'foreign'])
    const what = roll(3)
    world.note(`people: ${['create', 'delete', 'a quota beside'][what]} ${name}`)
    if (what === 0) return createClass(client, driver, name)
    if (what === 1) return client.delete(volumeAttributesClassKind, { name })
    const body = { spec: { hard: { persistentvolumeclaims: String(1 + roll(4)) } } }
    return client.patch(resourceQuotaKind, { namespace: 'default', name: GOLD_QUOTA }, { type: 'merge', body })
  }

  /** Any error at all; but a driver that has given attributes does not say that it will not. */
  function refusal(method: string, volumes: readonly string[]): FakeRule | undefined {
    if (method !== 'ControllerModifyVolume' || dice() >= refusals) return undefined
    const codes = volumes.some((one) => checker.isGiven(one)) ? TELLING_NOTHING : DRIVER_ERRORS
    return { effect: { do: 'fail', code: pick(codes), message: 'a bad day' } }
  }

  function settle(): Promise<void> {
    return untilQuiet(world, {
      court,
      problems: () => [...growth.problems(), ...checker.problems()],
      happened: () => growth.changes + driver.record.calls.length + checker.heard,
      changedMs: () => growth.changedMs,
    })
  }
}
