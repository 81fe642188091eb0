// Crash scenario: claims of every sort are created, get their volumes and are deleted again (provisioning-steps.ts), while
// one process crashes at one point.

import { fakeSettings } from '../../csi/fake/index.ts'
import { isBound } from '../checkers/context.ts'
import type { View } from '../engine/view.ts'
import type { SimDriver } from '../environment/driver.ts'
import { premadeVolume } from '../environment/premade-volume.ts'
import { memoryPlugin, runBinder, runProvisioner } from './claim-controllers.ts'
import { type Crash, type CrashRun, createCrashSystem, DRIVER, finish, LOOK_MS, type Mode } from './crash-point.ts'
import { PREMADE, prepare, type Step, stepsOf } from './provisioning-steps.ts'

const SEED = 4
const GI = 1024 ** 3
const END_MS_MAX = 900_000
const REST_MS = 60_000

export async function provisioningCrash(mode: Mode, crash?: Crash): Promise<CrashRun> {
  const held = new Map<string, bigint>()
  const crashSystem = await createCrashSystem({
    seed: SEED,
    mode,
    at: crash?.at,
    driverSettings: fakeSettings({ name: DRIVER }),
    async prepare(client, driver) {
      premadeVolume(driver, PREMADE, GI)
      await prepare(client)
    },
    addProcesses(host, { effects, view, report }) {
      const onDelete = (name: string) => {
        const volume = view.volumes.get(name)
        const claim = [...view.claims.values()].find(({ spec }) => spec?.volumeName === name)
        const isKept = volume?.spec?.persistentVolumeReclaimPolicy !== 'Delete' || (claim && isBound(claim))
        if (volume && isKept) report('wrong deletion', `the plugin deletes ${name}, which is retained or bound`)
      }
      host.add('binder', (context) => {
        const { env } = context
        const call = <T>(what: string, act: () => T) =>
          effects.around(env, { on: 'plugin', what }, () => env.pass(Promise.resolve().then(act)))
        return runBinder(context, memoryPlugin({ held, call, onDelete }))
      })
      host.add('provisioner', runProvisioner)
    },
  })
  const { simulation, system, view, driver, effects } = crashSystem
  const isRequested = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'CreateVolume' && volume === name)
  const sequences = stepsOf({ view, isRequested })
  for (const steps of sequences) follow(steps)

  /** One user: performs the next step when it is due, and again until it is done. */
  function follow(steps: Step[]): void {
    if (steps[0]?.isDone()) steps.shift()
    const [step] = steps
    if (!step) return
    const client = system.cluster.direct()
    if (client && step.isDue()) void step.act(client).catch(() => {})
    simulation.schedule(LOOK_MS, () => follow(steps))
  }

  const end = () => stateOf(view, driver, held)
  await finish(crashSystem, {
    expected: crash?.expected,
    end,
    isDone: () => sequences.every((steps) => steps.length === 0),
    remaining: () => sequences.flatMap((steps) => steps.map(({ name }) => name)),
    endMsMax: END_MS_MAX,
    restMs: REST_MS,
  })
  return {
    effects: effects.all.map(({ by, what }) => `${by}: ${readable(what, view)}`),
    end: end(),
    steps: simulation.steps,
  }
}

function stateOf(view: View, driver: SimDriver, heldByPlugin: ReadonlyMap<string, bigint>): string {
  const held = Object.values(driver.state().volumes)
  const objects = [...view.claims.values(), ...view.volumes.values()].map((object) => {
    const { name, finalizers = [], annotations = {}, deletionTimestamp } = object.metadata
    const { claimRef, csi, ...spec } = { claimRef: undefined, csi: undefined, ...object.spec }
    const owner = claimRef && { ...(claimRef as object), resourceVersion: undefined }
    const handle = csi && (csi as { volumeHandle?: string }).volumeHandle
    return {
      name,
      finalizers: [...finalizers].sort(),
      annotations,
      isDeleting: deletionTimestamp !== undefined,
      spec,
      owner,
      handle,
      status: object.status,
    }
  })
  const storage = [
    ...held.map(({ name, capacityBytes }) => `in the driver: ${name}, ${capacityBytes} bytes`),
    ...[...heldByPlugin].map(([name, bytes]) => `in the plugin: ${name}, ${bytes} bytes`),
  ]
  let lines = [...objects.map((object) => JSON.stringify(object)), ...storage]
    .map((line) => readable(line, view))
    .sort()
  for (const { id, name } of held) lines = lines.map((line) => line.replaceAll(id, `[${readable(name, view)}]`))
  return lines.join('\n')
}

/** With the names of claims in place of their uids, and without times. */
function readable(text: string, { store }: View): string {
  let result = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then')
  for (const [uid, key] of store.claimNames) result = result.replaceAll(uid, key.replace('/', '.'))
  return result
}
