// Scenario: people grow claims, take that back, ask for too much and change the quota, while everything goes wrong that
// can: network, disk, driver, and any process at any await. Then all faults end.
// Promise: on the way nothing shrinks, nobody is told of a size that is not there, and the quota is exact; once it is
// quiet every claim has the size it asks for, or says why not.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { Client } from '../../client/index.ts'
import { type FakeRule, fakeSettings } from '../../csi/fake/index.ts'
import { answerTo } from '../answer.ts'
import { createCourt } from '../checkers/conviction.ts'
import { bytesOf, checkExpansion } from '../checkers/expansion.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import { createWorld, type World } from '../world.ts'
import { beginBadDay, beginDying, crashesOf, passSomeTime, restart, WORST_DRIVER } from './bad-day.ts'
import { boundClaims, DRIVER_ERRORS, gi, runExpander, runGrowingNode, TELLING_NOTHING } from './expansion-world.ts'
import { untilQuiet } from './until-quiet.ts'

export interface ExpansionRun {
  readonly world: World
  readonly acts: number
  readonly effects: number
  readonly crashes: number
  /** How often a volume really grew. */
  readonly grown: number
}

const MINUTE_MS = 60_000
const CLAIMS = ['a', 'b', 'c', 'd']
/** The driver makes no larger volumes; people ask for up to so many more. */
const MAXIMUM_GI = 12
const WISH_GI = 16

export async function expansionInABadWorld(seed: number, { minutes = 12 } = {}): Promise<ExpansionRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const followsRealSize = dice() < 0.5
  const cluster = await createCluster(
    world,
    { keepMs: 120_000, entriesMax: 200 },
    { expansionQuota: followsRealSize ? 'actual' : 'high-water-mark' },
  )
  const settings = fakeSettings({
    pools: [{ name: 'pool', capacityBytes: gi(10_000) }],
    maximumBytes: gi(MAXIMUM_GI),
    expandsOnNode: dice() < 0.7,
  })
  const driver = createSimDriver(world, 'driver', settings)
  const court = createCourt(world, `seed ${seed}`, () => checker.text())
  const checker = checkExpansion({
    cluster,
    driver,
    followsRealSize,
    maximumBytes: gi(MAXIMUM_GI),
    convict: court.convict,
  })
  await answerTo(world, boundClaims(cluster.direct()!, driver, CLAIMS, '40Gi'), 'claims and volumes')

  let refusals = 0
  const scripted = driver.script.match
  driver.script.match = (method, volumes) => scripted(method, volumes) ?? refusal(method, volumes)
  const effects = createEffects({}, ({ by, what }) => world.note(`${by}: ${what}`))
  const inMode = dice() < 0.5 ? oneByOne : (client: Client) => client
  const expander = cluster.add('expander', (env, client) => {
    const csi = checker.witness(effects.driverOf(env, driver.driverFor(env)))
    void runExpander(env, { client: inMode(effects.clientOf(env, client)), chatter: client }, csi)
  })
  const node = cluster.add('node', (env, client) => {
    const csi = effects.driverOf(env, driver.driverFor(env))
    runGrowingNode(env, { client: effects.clientOf(env, client), chatter: client }, csi, settings.name)
  })
  const processes = [expander, node]
  const day = { dice, cluster, driver, mortals: processes }
  beginBadDay(day, { driver: { ...WORST_DRIVER, refuse: undefined } }) // refusal() does that
  refusals = dice() * 0.3
  beginDying(day)

  let acts = 0
  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await passSomeTime(day, processes)
    if (dice() < 0.1) driver.script.release()
    const client = cluster.direct()
    if (!client) continue
    if (dice() < 0.1) void changeQuota(client).catch(() => {})
    for (let left = Math.floor(dice() * 4); left > 0; left--) {
      acts++
      void act(client).catch(() => {}) // refused, or the server died over it
    }
  }

  await cluster.heal()
  driver.heal()
  refusals = 0
  restart(node) // a driver that refused a volume in use is not asked again before it is mounted anew
  await world.runFor(MINUTE_MS) // what people asked for last is under way
  await untilQuiet(world, {
    court,
    problems: checker.problems,
    happened: () => checker.changes + driver.record.calls.length,
    changedMs: () => checker.changedMs,
  })
  for (const process of processes) restart(process) // who starts anew finds nothing to do
  await world.runFor(MINUTE_MS)
  for (const problem of checker.problems()) court.convict(`after a restart: ${problem}`)
  for (const { volume } of driver.record.overlaps) court.convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  const crashes = crashesOf([cluster.server, driver.process, ...processes])
  const grown = Object.values(driver.state().volumes).filter(({ capacityBytes }) => capacityBytes > gi(1)).length
  return { world, acts, effects: effects.all.length, crashes, grown }

  function act(client: Client): Promise<unknown> {
    const name = CLAIMS[Math.floor(dice() * CLAIMS.length)]!
    const claim = checker.claim(name)
    const capacity = bytesOf(claim?.status?.capacity?.storage)
    const roll = dice()
    const wish =
      roll < 0.2
        ? (claim?.status?.capacity?.storage ?? '1Gi') // cancels
        : roll < 0.4
          ? `${Math.ceil(capacity / gi(1)) + 1}Gi` // modest
          : `${1 + Math.floor(dice() * WISH_GI)}Gi`
    world.note(`people: ${name} is to have ${wish}`)
    const body =
      roll < 0.9
        ? { spec: { resources: { requests: { storage: wish } } } }
        : { metadata: { labels: { touched: wish } } }
    return client.patch(persistentVolumeClaimKind, { namespace: 'default', name }, { type: 'merge', body })
  }

  function changeQuota(client: Client): Promise<unknown> {
    const hard = { 'requests.storage': `${10 + Math.floor(dice() * 50)}Gi` }
    world.note(`people: the quota is ${hard['requests.storage']}`)
    return client.patch(
      resourceQuotaKind,
      { namespace: 'default', name: 'team' },
      { type: 'merge', body: { spec: { hard } } },
    )
  }

  /** Any error at all; but a driver that has given a size does not say that it will not. */
  function refusal(method: string, volumes: readonly string[]): FakeRule | undefined {
    if (!method.endsWith('ExpandVolume') || dice() >= refusals) return undefined
    const isGiven = method === 'ControllerExpandVolume' && volumes.some((one) => checker.isGiven(one))
    const codes = isGiven ? TELLING_NOTHING : DRIVER_ERRORS
    return { effect: { do: 'fail', code: codes[Math.floor(dice() * codes.length)]!, message: 'a bad day' } }
  }
}
