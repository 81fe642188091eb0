// A fake system for tests of checkers: the test makes every commit, driver call and mount. Nothing runs in the background. Also
// builds the objects that the tests store.
import type { Message } from '@bufbuild/protobuf'
import type { Registry } from 'prom-client'
import type { DriverCall, System, SystemNode } from '../engine/system.ts'
import { createViewWithoutStore, type KindKey, storeKeyOf } from '../engine/view.ts'
import { createSimDriver } from '../environment/driver.ts'
import { addPremadeVolume } from '../environment/premade-volume.ts'
import { createSimulation } from '../environment/simulation.ts'
import { DRIVERS, type DriverName, GI, NODES, settingsOf } from '../plan/catalog.ts'
import { findProblems } from './at-rest/index.ts'
import { followClasses, followExpectedAttributes } from './attributes.ts'
import type { CheckContext, Problem } from './context.ts'
import { createExemptions } from './exemptions.ts'
import { followEvents } from './recorded-events.ts'

export function createFixture() {
  const simulation = createSimulation(1)
  const drivers = new Map(DRIVERS.map((name) => [name, createSimDriver(simulation, name, settingsOf(name, NODES))]))
  const listeners: Parameters<System['onCall']>[0][] = []
  const machineListeners: (() => void)[] = []
  const mounts = new Map<string, { path: string; volume: string }[]>(NODES.map((name) => [name, []]))
  const nodes = new Map(
    NODES.map((name) => [
      name,
      {
        name,
        isOn: true,
        isRunning: true,
        isReachable: true,
        isLostForGood: false,
        mounts: () => mounts.get(name)!,
      } as unknown as SystemNode,
    ]),
  )
  const processes = new Map<string, { alive: boolean; starts: number; isFrozen: boolean }>()
  const calls: DriverCall[] = []
  const registries: { process: string; incarnation: number; registry: Registry }[] = []
  let follower: ((store: unknown) => void) | undefined
  const system = {
    setup: { commits: 'atomic' },
    cluster: {
      simulation,
      store: () => undefined,
      follow: (listener: (store: unknown) => void) => {
        follower = listener
      },
    },
    drivers,
    nodes,
    processes,
    calls,
    registries,
    pluginVolumes: new Map<string, bigint>(),
    onPluginDelete: () => {},
    gates: { enabled: () => true },
    onCall: (listener: Parameters<System['onCall']>[0]) => void listeners.push(listener),
    beforeMachineChange: (listener: () => void) => void machineListeners.push(listener),
  } as unknown as System
  const view = createViewWithoutStore({ nowMs: () => simulation.nowMs })
  const violations: string[] = []
  const deletedByProcess = new Set<string>()
  const exemptions = createExemptions(system, view, ({ metadata }) => deletedByProcess.has(metadata.uid ?? ''))
  const context: CheckContext = {
    system,
    view,
    exemptions,
    report: (rule, text) => void violations.push(`${rule}: ${text}`),
  }
  const classes = followClasses(view)
  const expectedAttributes = followExpectedAttributes(context, classes)
  const events = followEvents(view)
  let revision = 0

  const encodeStored = (kind: KindKey, object: FixtureObject) => {
    const { namespace, name, ...metadata } = object.metadata
    const key = storeKeyOf(kind, namespace ? `${namespace}/${name}` : name)
    const value = {
      ...object,
      metadata: { name, ...(namespace ? { namespace } : {}), uid: `uid-${name}`, ...metadata },
    }
    return { key, value: Buffer.from(JSON.stringify(value)), revision: ++revision }
  }

  return {
    simulation,
    system,
    view,
    exemptions,
    context,
    classes,
    violations,
    mounts,
    processes,
    deletedByProcess,
    registries,
    calls,
    /** Stores the objects in one commit. */
    put: (...objects: readonly (readonly [KindKey, FixtureObject])[]) =>
      view.apply(objects.map(([kind, object]) => encodeStored(kind, object))),
    remove: (kind: KindKey, key: string) =>
      view.apply([{ key: storeKeyOf(kind, key), value: undefined, revision: ++revision }]),
    addDriverVolume: (driver: DriverName, handle: string, gi = 1) => {
      addPremadeVolume(drivers.get(driver)!, handle, gi * GI)
      return drivers.get(driver)!.state().volumes[handle]!
    },
    recordEvent: (uid: string, reason: string, message = 'because') =>
      view.apply([
        encodeStored('event', {
          metadata: { namespace: 'default', name: `${uid}.${reason}` },
          involvedObject: { uid },
          type: 'Warning',
          reason,
          message,
        }),
      ]),
    /** Starts a driver call of a process. Returns a function that ends it. */
    call(process: string, driver: DriverName, method: string, volume: string, request: object = {}) {
      if (!processes.has(process)) processes.set(process, { alive: true, starts: 1, isFrozen: false })
      const call = {
        process,
        incarnation: 1,
        driver,
        method,
        volume,
        request: request as Message,
        startMs: simulation.nowMs,
      }
      const openCall: DriverCall = { ...call, endMs: undefined, outcome: undefined }
      calls.push(openCall)
      for (const listener of listeners) listener(openCall, 'begins')
      return (outcome = 'OK') => {
        Object.assign(openCall, { endMs: simulation.nowMs, outcome })
        for (const listener of listeners) listener(openCall, 'ends')
      }
    },
    /** Suspends or resumes a machine. */
    setRunning(node: (typeof NODES)[number], isRunning: boolean) {
      for (const listener of machineListeners) listener()
      Object.assign(nodes.get(node)!, { isRunning })
    },
    startServer: (store: unknown) => follower?.(store),
    problems: (): string[] =>
      findProblems({ system, view, exemptions, classes, expectedAttributes, events }).map(
        ({ rule, text }: Problem) => `${rule}: ${text}`,
      ),
  }
}

interface FixtureObject {
  readonly metadata: { readonly namespace?: string; readonly name: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

interface ClaimParts {
  readonly phase?: string
  readonly volumeName?: string
  readonly className?: string
  readonly storage?: string
  readonly metadata?: object
  readonly spec?: object
  readonly status?: object
}

export const aClaim = (name: string, { phase = 'Pending', volumeName, ...parts }: ClaimParts = {}) => ({
  metadata: { namespace: 'team-a', name, ...parts.metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: parts.storage ?? '1Gi' } },
    storageClassName: parts.className ?? 'net-now',
    ...(volumeName ? { volumeName } : {}),
    ...parts.spec,
  },
  status: { phase, ...(phase === 'Bound' ? { capacity: { storage: '1Gi' } } : {}), ...parts.status },
})

interface VolumeParts {
  readonly phase?: string
  readonly claim?: string
  readonly policy?: string
  readonly handle?: string
  readonly driver?: DriverName
  readonly metadata?: object
  readonly spec?: object
}

export const aVolume = (
  name: string,
  { phase = 'Available', claim, policy = 'Delete', ...parts }: VolumeParts = {},
) => ({
  metadata: { name, ...parts.metadata },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'static',
    persistentVolumeReclaimPolicy: policy,
    csi: { driver: parts.driver ?? 'net.sim', volumeHandle: parts.handle ?? name },
    ...(claim ? { claimRef: { namespace: 'team-a', name: claim, uid: `uid-${claim}` } } : {}),
    ...parts.spec,
  },
  status: { phase },
})

export const aNode = (name: string, spec: object = {}) => ({
  metadata: { name, labels: { 'topology.sim/node': name } },
  spec,
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

export const aPod = (name: string, claims: readonly string[], parts: { spec?: object; status?: object } = {}) => ({
  metadata: { namespace: 'team-a', name },
  spec: {
    containers: [{ name: 'main', volumeMounts: claims.map((claim) => ({ name: claim, mountPath: `/${claim}` })) }],
    volumes: claims.map((claim) => ({ name: claim, persistentVolumeClaim: { claimName: claim } })),
    ...parts.spec,
  },
  status: { ...parts.status },
})

export const aClass = (name: string, provisioner: DriverName, volumeBindingMode = 'Immediate') => ({
  metadata: { name },
  provisioner,
  volumeBindingMode,
  reclaimPolicy: 'Delete',
})
