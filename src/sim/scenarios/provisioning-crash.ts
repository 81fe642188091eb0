// Scenario: claims become volumes and go again in a world where nothing goes wrong, except one thing at one moment:
// right before or right after one effect (../effects.ts), one process dies, to be started again a while later.
// Promise: in the end everything is as it would have been, and on the way no rule was broken.

import { answerTo } from '../answer.ts'
import { checkBindings } from '../checkers/bindings.ts'
import { checkDeletions } from '../checkers/deletions.ts'
import { createStoreView, type StoreView } from '../checkers/store-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import { premadeVolume } from '../premade-volume.ts'
import type { SimProcess } from '../process.ts'
import { createWorld } from '../world.ts'
import { memoryPlugin, runBinder, runProvisioner } from './claims-become-volumes-processes.ts'
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
import { PREMADE, prepare, type Step, storiesOf } from './provisioning-crash-story.ts'

const SEED = 4
const GI = 1024 ** 3
const END_MS_MAX = 900_000
/** Without anything to compare with: long enough for everything to end. */
const UNDISTURBED_MS = 60_000

export async function provisioningCrash(mode: Mode, crash?: Crash): Promise<CrashRun> {
  const { at, expected } = crash ?? {}
  const world = createWorld(SEED)
  const cluster = await createCluster(world)
  const driver = createSimDriver(world, 'driver')
  const assets = new Map<string, bigint>()
  const view = createStoreView(cluster)
  const court = courtOf(world, mode, at)
  const deletions = checkDeletions(world, view, court.convict)
  checkBindings(view, court.convict)
  premadeVolume(driver, PREMADE, GI)

  const processes: Record<string, SimProcess> = {}
  const effects = deadlyEffects({ world, cluster, driver, processes }, at)

  const inMode = inModeOf(mode)
  await answerTo(world, prepare(cluster.direct()!, driver.settings.name), 'classes and volumes')
  processes.binder = cluster.add('binder', (env, client) => {
    const seen = deletions.witness(client)
    const way = <T>(what: string, act: () => T) =>
      effects.around(env, { on: 'plugin', what }, () => env.pass(Promise.resolve().then(act)))
    runBinder(env, inMode(effects.clientOf(env, seen.client)), memoryPlugin(assets, way, seen.destroys))
  })
  processes.provisioner = cluster.add('provisioner', (env, client) => {
    const seen = deletions.witness(client)
    const csi = effects.driverOf(env, seen.driver(driver.driverFor(env)))
    void runProvisioner(env, inMode(effects.clientOf(env, seen.client)), csi)
  })

  const isAskedFor = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'CreateVolume' && volume === name)
  const stories = storiesOf({ view, driverName: driver.settings.name, isAskedFor })
  const isTold = () => stories.every((steps) => steps.length === 0)
  for (const steps of stories) follow(steps)

  /** One user: does the next step as soon as it is due, and again until it is done. */
  function follow(steps: Step[]): void {
    if (steps[0]?.isDone()) steps.shift()
    const [step] = steps
    if (!step) return
    const again = () => void world.schedule(LOOK_MS, () => follow(steps))
    const client = cluster.direct()
    if (client && step.isDue()) void step.act(client).catch(() => {})
    again()
  }

  const end = () => endState(view, driver, assets)
  await untilTheEnd(world, {
    court,
    expected,
    end,
    isTold,
    changed: () => view.changedMs,
    endMsMax: END_MS_MAX,
    undisturbedMs: UNDISTURBED_MS,
  })
  for (const { volume } of driver.record.overlaps) court.convict(`two operations on ${volume} ran at once`)
  court.adjourn()
  return {
    effects: effects.all.map(({ by, what }) => `${by}: ${readable(what, view)}`),
    end: end(),
    steps: world.steps,
  }
}

function endState(view: StoreView, driver: SimDriver, assets: ReadonlyMap<string, bigint>): string {
  const held = Object.values(driver.state().volumes)
  const objects = [...view.claims.values(), ...view.volumes.values()].map((object) => {
    const { name, finalizers = [], annotations = {}, deletionTimestamp } = object.metadata
    const { claimRef, csi, ...spec } = { claimRef: undefined, csi: undefined, ...object.spec }
    const owner = claimRef && { ...(claimRef as object), resourceVersion: undefined }
    const handle = csi && (csi as { volumeHandle?: string }).volumeHandle
    const isGoing = deletionTimestamp !== undefined
    return {
      name,
      finalizers: [...finalizers].sort(),
      annotations,
      isGoing,
      spec,
      owner,
      handle,
      status: object.status,
    }
  })
  const storage = [
    ...held.map(({ name, capacityBytes }) => `in the driver: ${name}, ${capacityBytes} bytes`),
    ...[...assets].map(([name, bytes]) => `in the plugin: ${name}, ${bytes} bytes`),
  ]
  let text = [...objects.map((object) => JSON.stringify(object)), ...storage].map((line) => readable(line, view)).sort()
  for (const { id, name } of held) text = text.map((line) => line.replaceAll(id, `[${readable(name, view)}]`))
  return text.join('\n')
}

/** With the names of claims in place of their uids, and without times. */
function readable(text: string, { claimNames }: StoreView): string {
  let readableText = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then')
  for (const [uid, key] of claimNames) readableText = readableText.replaceAll(uid, key.replace('/', '.'))
  return readableText
}
