// Crash scenario: claims of several classes are created, and most are deleted again (provisioning-steps.ts), while one
// process crashes at one point.

import { fakeSettings } from '../../csi/fake/index.ts'
import { isBound } from '../checkers/context.ts'
import { createMemoryPlugin } from '../engine/memory-plugin.ts'
import type { View } from '../engine/view.ts'
import type { SimDriver } from '../environment/driver.ts'
import { addPremadeVolume } from '../environment/premade-volume.ts'
import { runBinder, runProvisioner } from './claim-controllers.ts'
import {
  type Crash,
  type CrashRun,
  createCrashSystem,
  DRIVER,
  finish,
  type Mode,
  POLL_INTERVAL_MS,
} from './crash-point.ts'
import { createInitialObjects, PREMADE, planSteps, type Step } from './provisioning-steps.ts'

const SEED = 4
const GI = 1024 ** 3
const END_MS_MAX = 900_000
const REST_MS = 60_000

export async function runProvisioningCrash(mode: Mode, crash?: Crash): Promise<CrashRun> {
  const pluginVolumes = new Map<string, bigint>()
  const crashSystem = await createCrashSystem({
    seed: SEED,
    mode,
    at: crash?.at,
    driverSettings: fakeSettings({ name: DRIVER }),
    async prepare(client, driver) {
      addPremadeVolume(driver, PREMADE, GI)
      await createInitialObjects(client)
    },
    addProcesses(host, { effects, view, report }) {
      const onDelete = (name: string) => {
        const volume = view.volumes.get(name)
        const claim = [...view.claims.values()].find(({ spec }) => spec?.volumeName === name)
        const isProtected = volume?.spec?.persistentVolumeReclaimPolicy !== 'Delete' || (claim && isBound(claim))
        if (volume && isProtected) report('wrong deletion', `the plugin deletes ${name}, which is retained or bound`)
      }
      host.add('binder', (context) => {
        const { env } = context
        const call = <T>(description: string, operation: () => T) =>
          effects.perform(env, { target: 'plugin', description }, () => env.pass(Promise.resolve().then(operation)))
        return runBinder(context, createMemoryPlugin({ volumes: pluginVolumes, call, onDelete }))
      })
      host.add('provisioner', runProvisioner)
    },
  })
  const { simulation, system, view, driver, effects } = crashSystem
  const isRequested = (name: string) =>
    driver.record.calls.some(({ method, volume }) => method === 'CreateVolume' && volume === name)
  const sequences = planSteps({ view, isRequested })
  for (const steps of sequences) followSteps(steps)

  /** Acts as one user: performs the next step when it is due, and again until it is done. */
  function followSteps(steps: Step[]): void {
    if (steps[0]?.isDone()) steps.shift()
    const [step] = steps
    if (!step) return
    const client = system.cluster.directClient()
    if (client && step.isDue()) void step.act(client).catch(() => {})
    simulation.schedule(POLL_INTERVAL_MS, () => followSteps(steps))
  }

  const end = () => describeState(view, driver, pluginVolumes)
  await finish(crashSystem, {
    expected: crash?.expected,
    end,
    isDone: () => sequences.every((steps) => steps.length === 0),
    remainingSteps: () => sequences.flatMap((steps) => steps.map(({ name }) => name)),
    endMsMax: END_MS_MAX,
    restMs: REST_MS,
  })
  return {
    effects: effects.list.map(({ process, description }) => `${process}: ${normalize(description, view)}`),
    end: end(),
    steps: simulation.steps,
  }
}

function describeState(view: View, driver: SimDriver, pluginVolumes: ReadonlyMap<string, bigint>): string {
  const driverVolumes = Object.values(driver.state().volumes)
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
    ...driverVolumes.map(({ name, capacityBytes }) => `in the driver: ${name}, ${capacityBytes} bytes`),
    ...[...pluginVolumes].map(([name, bytes]) => `in the plugin: ${name}, ${bytes} bytes`),
  ]
  let lines = [...objects.map((object) => JSON.stringify(object)), ...storage]
    .map((line) => normalize(line, view))
    .sort()
  for (const { id, name } of driverVolumes)
    lines = lines.map((line) => line.replaceAll(id, `[${normalize(name, view)}]`))
  return lines.join('\n')
}

/** Replaces the uids of claims with their names, and all times with a placeholder, so that runs can be compared. */
function normalize(text: string, { claimsAndVolumes }: View): string {
  let result = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then')
  for (const [uid, key] of claimsAndVolumes.claimNames) result = result.replaceAll(uid, key.replace('/', '.'))
  return result
}
