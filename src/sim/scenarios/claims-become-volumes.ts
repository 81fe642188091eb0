// Scenario: people make, edit and delete claims, volumes and classes for a while, and everything goes wrong that can:
// network, disk, driver, and any process at any await. Then all faults end.
// Promise: on the way no volume is bound twice and no data destroyed that should stay; once it is quiet nothing has
// leaked, nothing is stuck, and every claim is bound or says why not.
import { eventKind } from '../../api/kinds/event/event.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import { answerTo } from '../answer.ts'
import { followAbandoned } from '../checkers/abandoned.ts'
import { checkBindings, isBound } from '../checkers/bindings.ts'
import { createCourt } from '../checkers/conviction.ts'
import { checkDeletions } from '../checkers/deletions.ts'
import { problemsOf } from '../checkers/quiet.ts'
import { type Claim, createStoreView, textOf } from '../checkers/store-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver } from '../driver.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import type { SimProcess } from '../process.ts'
import { createWorld, type World } from '../world.ts'
import { beginBadDay, beginDying, crashesOf, passSomeTime, restart } from './bad-day.ts'
import { createPeople } from './claims-become-volumes-people.ts'
import { memoryPlugin, runBinder, runProvisioner } from './claims-become-volumes-processes.ts'
import { untilQuiet } from './until-quiet.ts'

export interface ProvisioningRun {
  readonly world: World
  /** What people did, and what the processes. */
  readonly acts: number
  readonly effects: number
  readonly crashes: number
  /** Volumes the driver ever held. */
  readonly made: number
}

const MINUTE_MS = 60_000
const RESTART_MS = 2 * MINUTE_MS
const CAPACITY_BYTES = 1024 ** 5

export async function claimsBecomeVolumes(seed: number, { minutes = 12 } = {}): Promise<ProvisioningRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const cluster = await createCluster(world, { keepMs: 120_000, entriesMax: 200 })
  const pools = [{ name: 'pool', capacityBytes: CAPACITY_BYTES }]
  const driver = createSimDriver(world, 'driver', fakeSettings({ pools }))
  const plugin = new Map<string, bigint>()
  const view = createStoreView(cluster)
  const court = createCourt(world, `seed ${seed}`, () => textOf(view))
  const abandoned = followAbandoned(view)
  const deletions = checkDeletions(world, view, court.convict)
  checkBindings(view, court.convict)
  const people = createPeople({ world, view, driver, abandoned })
  const effects = createEffects({}, ({ by, what }) => world.note(`${by}: ${what}`))

  const inMode = dice() < 0.5 ? oneByOne : (client: Client) => client
  const binding = { bindsOnSave: dice() < 0.5 }
  const hasRival = dice() < 0.3
  const binder = cluster.add('binder', (env, client) => {
    const way = <T>(what: string, act: () => T) =>
      effects.around(env, { on: 'plugin', what }, () => env.pass(Promise.resolve().then(act)))
    const seen = deletions.witness(client)
    runBinder(env, inMode(effects.clientOf(env, seen.client)), memoryPlugin(plugin, way, seen.destroys), binding)
  })
  const binders = [binder]
  if (dice() < 0.2) {
    binders.push(cluster.add('second binder', (env, client) => runBinder(env, inMode(effects.clientOf(env, client)))))
  }
  const provisioners = (hasRival ? ['provisioner', 'rival'] : ['provisioner']).map((name) =>
    cluster.add(name, (env, client) => {
      const seen = deletions.witness(client)
      const csi = effects.driverOf(env, seen.driver(driver.driverFor(env)))
      void runProvisioner(env, inMode(effects.clientOf(env, seen.client)), csi, binding)
    }),
  )
  const processes: SimProcess[] = [...binders, ...provisioners]
  // Two provisioners at once share one intent. What a dead one began, the other may let go of: for those who can die
  // there is leader election.
  const mortals = hasRival ? binders : processes
  await answerTo(world, people.restoreClasses(cluster.direct()!), 'the classes')
  const day = { dice, cluster, driver, mortals }
  beginBadDay(day)
  beginDying(day)

  let acts = 0
  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await passSomeTime(day, processes)
    if (dice() < 0.1) driver.script.release()
    const client = cluster.direct()
    if (!client) continue
    for (let left = Math.floor(dice() * 5); left > 0; left--) {
      acts++
      void people.act(client).catch(() => {})
    }
  }

  await cluster.heal()
  driver.heal()
  await answerTo(world, people.restoreClasses(cluster.direct()!), 'the classes')
  const classes = await classesNow()
  const quiet = { view, storage: { driver, plugin }, abandoned, condemned: deletions.condemned, classes }
  await untilQuiet(world, {
    court,
    problems: () => problemsOf(quiet),
    happened: () => view.changedMs + driver.record.calls.length,
    changedMs: () => view.changedMs,
  })
  await startAnew()
  for (const { volume } of driver.record.overlaps) {
    if (!hasRival) court.convict(`two operations on ${volume} ran at once`)
  }
  court.adjourn()
  const crashes = crashesOf([cluster.server, driver.process, ...processes])
  return { world, acts, effects: effects.all.length, crashes, made: driver.state().sequence }

  /** Who starts anew finds nothing to do, and tells everyone who waits why. */
  async function startAnew(): Promise<void> {
    for (const process of mortals) restart(process)
    await world.runFor(RESTART_MS)
    for (const problem of problemsOf(quiet)) court.convict(`after a restart: ${problem}`)
    const told = new Set<string>()
    const { items } = await answerTo(world, cluster.direct()!.list(eventKind), 'the events')
    for (const { involvedObject } of items) told.add(involvedObject?.uid ?? '')
    for (const claim of view.claims.values()) {
      if (isBound(claim) || told.has(claim.metadata.uid ?? '') || namesNothing(claim)) continue
      court.convict(`claim ${keyOfObject(claim)} is ${claim.status?.phase}, and no event says why`)
    }
  }

  /** Its own spec says why, and no binder has ever told people so. */
  function namesNothing({ spec, status }: Claim): boolean {
    return status?.phase === 'Pending' && spec?.volumeName !== undefined && !view.volumes.has(spec.volumeName)
  }

  async function classesNow(): Promise<Map<string, Readonly<StorageClass>>> {
    const { items } = await answerTo(world, cluster.direct()!.list(storageClassKind), 'a list of classes')
    return new Map(items.map((one) => [one.metadata.name ?? '', one]))
  }
}
