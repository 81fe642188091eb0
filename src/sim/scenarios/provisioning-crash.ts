// Scenario: claims become volumes and go again in a world where nothing goes wrong, except one thing at one moment:
// right before or right after one effect (../effects.ts), one process dies, to be started again a while later.
// Promise: in the end everything is as it would have been, and on the way no rule was broken.

import { checkBindings } from '../checkers/bindings.ts'
import { createCourt } from '../checkers/conviction.ts'
import { checkDeletions } from '../checkers/deletions.ts'
import { createStoreView, type StoreView } from '../checkers/store-view.ts'
import { createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import type { Effect } from '../effects.ts'
import { createEffects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import { premadeVolume } from '../premade-volume.ts'
import type { SimProcess } from '../process.ts'
import { createWorld } from '../world.ts'
import { memoryPlugin, runBinder, runProvisioner } from './claims-become-volumes-processes.ts'
import { PREMADE, prepare, type Step, storiesOf } from './provisioning-crash-story.ts'

export const VICTIMS = ['process', 'server', 'driver'] as const
export const MODES = ['transactions', 'one by one'] as const

export interface CrashPoint {
  readonly effect: number
  readonly when: 'before' | 'after'
  /** `process`: the one whose effect it is. */
  readonly victim: (typeof VICTIMS)[number]
}

export interface CrashRun {
  /** In readable words, in order. */
  readonly effects: readonly string[]
  /** Everything that is left, without what differs from run to run. */
  readonly end: string
  readonly steps: number
}

const SEED = 4
const GI = 1024 ** 3
const DOWN_MS = 3_000
const LOOK_MS = 50
const END_MS_MAX = 900_000
/** What is as it should be must stay so. */
const STAYS_MS = 10_000
/** Without anything to compare with: long enough for everything to end. */
const UNDISTURBED_MS = 60_000

export async function provisioningCrash(
  mode: (typeof MODES)[number],
  crash?: { readonly at: CrashPoint; readonly expected: string },
): Promise<CrashRun> {
  const { at, expected } = crash ?? {}
  const world = createWorld(SEED)
  const cluster = await createCluster(world)
  const driver = createSimDriver(world, 'driver')
  const assets = new Map<string, bigint>()
  const view = createStoreView(cluster)
  const court = createCourt(world, at ? `CRASH_POINT='${mode}, ${at.effect} ${at.when} ${at.victim}'` : mode)
  const deletions = checkDeletions(world, view, court.convict)
  checkBindings(view, court.convict)
  premadeVolume(driver, PREMADE, GI)

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

  const inMode = mode === 'transactions' ? (client: Parameters<typeof oneByOne>[0]) => client : oneByOne
  const direct = cluster.direct()!
  let isPrepared = false
  void prepare(direct, driver.settings.name).then(() => {
    isPrepared = true
  })
  await world.runUntil(() => isPrepared, { withinMs: 60_000, waitingFor: 'classes and volumes' })
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
  if (expected === undefined) {
    await world.runUntil(isTold, { withinMs: END_MS_MAX, waitingFor: 'the end of the stories' })
    await world.runFor(UNDISTURBED_MS)
  } else {
    let sinceMs = -1
    const isAsExpected = () => {
      if (view.changedMs === sinceMs || !isTold()) return false
      sinceMs = view.changedMs
      return end() === expected
    }
    try {
      await world.runUntil(isAsExpected, { withinMs: END_MS_MAX, waitingFor: 'the end that was expected' })
    } catch (error) {
      court.convict(`it ends with\n${end()}\ninstead of\n${expected}\n(${(error as Error).message.split('\n')[0]})`)
    }
    await world.runFor(STAYS_MS)
    if (end() !== expected) court.convict(`it does not stay as it should be:\n${end()}`)
  }
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
