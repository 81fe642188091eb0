// A stage on which a test says what happens: commits, driver calls, mounts. Nothing runs there by itself.
import type { Message } from '@bufbuild/protobuf'
import type { Registry } from 'prom-client'
import { createSimDriver } from '../../driver.ts'
import { premadeVolume } from '../../premade-volume.ts'
import { createWorld } from '../../world.ts'
import type { Stage, StageCall, StageNode } from '../stage.ts'
import { DRIVERS, type DriverName, GI, NODES, settingsOf } from '../universe.ts'
import { storeKeyOf, viewOver, type Word } from '../view.ts'
import { followClasses } from './attributes.ts'
import type { Court, Problem } from './court.ts'
import { createPast } from './past.ts'
import { problemsOf } from './quiet.ts'
import { followTold } from './told.ts'

export function aTrial() {
  const world = createWorld(1)
  const drivers = new Map(DRIVERS.map((name) => [name, createSimDriver(world, name, settingsOf(name, NODES))]))
  const listeners: Parameters<Stage['onCall']>[0][] = []
  const mounts = new Map<string, { path: string; volume: string }[]>(NODES.map((name) => [name, []]))
  const nodes = new Map(
    NODES.map((name) => [name, { name, isOn: true, mounts: () => mounts.get(name)! } as unknown as StageNode]),
  )
  const processes = new Map<string, { alive: boolean; starts: number; isFrozen: boolean }>()
  const calls: StageCall[] = []
  const registries: { process: string; life: number; registry: Registry }[] = []
  let follower: ((store: unknown) => void) | undefined
  const stage = {
    setup: { commits: 'atomic' },
    cluster: {
      world,
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
    gates: { enabled: () => true },
    onCall: (listener: Parameters<Stage['onCall']>[0]) => void listeners.push(listener),
  } as unknown as Stage
  const view = viewOver({ nowMs: () => world.nowMs })
  const crimes: string[] = []
  const deletedByProcess = new Set<string>()
  const past = createPast(stage, view, ({ metadata }) => deletedByProcess.has(metadata.uid ?? ''))
  const court: Court = { stage, view, past, convict: (rule, text) => void crimes.push(`${rule}: ${text}`) }
  const classes = followClasses(view)
  const told = followTold(view)
  let revision = 0

  const stored = (word: Word, object: any) => {
    const { namespace, name, ...metadata } = object.metadata
    const key = storeKeyOf(word, namespace ? `${namespace}/${name}` : name)
    const value = {
      ...object,
      metadata: { name, ...(namespace ? { namespace } : {}), uid: `uid-${name}`, ...metadata },
    }
    return { key, value: Buffer.from(JSON.stringify(value)), revision: ++revision }
  }

  return {
    world,
    stage,
    view,
    past,
    court,
    classes,
    crimes,
    mounts,
    processes,
    deletedByProcess,
    registries,
    calls,
    /** All in one commit. */
    put: (...objects: readonly (readonly [Word, any])[]) =>
      view.take(objects.map(([word, object]) => stored(word, object))),
    gone: (word: Word, key: string) =>
      view.take([{ key: storeKeyOf(word, key), value: undefined, revision: ++revision }]),
    held: (driver: DriverName, handle: string, gi = 1) => {
      premadeVolume(drivers.get(driver)!, handle, gi * GI)
      return drivers.get(driver)!.state().volumes[handle]!
    },
    tells: (uid: string, reason: string, message = 'because') =>
      view.take([
        stored('event', {
          metadata: { namespace: 'default', name: `${uid}.${reason}` },
          involvedObject: { uid },
          type: 'Warning',
          reason,
          message,
        }),
      ]),
    /** A call of a process begins; what is returned ends it. */
    call(process: string, driver: DriverName, method: string, volume: string, request: object = {}) {
      if (!processes.has(process)) processes.set(process, { alive: true, starts: 1, isFrozen: false })
      const call = { process, life: 1, driver, method, volume, request: request as Message, beganMs: world.nowMs }
      const open: StageCall = { ...call, endedMs: undefined, outcome: undefined }
      calls.push(open)
      for (const tell of listeners) tell(open, 'begins')
      return (outcome = 'OK') => {
        Object.assign(open, { endedMs: world.nowMs, outcome })
        for (const tell of listeners) tell(open, 'ends')
      }
    },
    serverStarts: (store: unknown) => follower?.(store),
    problems: (): string[] =>
      problemsOf({ stage, view, past, classes, told }).map(({ rule, text }: Problem) => `${rule}: ${text}`),
  }
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

export const aClaim = (name: string, { phase = 'Pending', volumeName, ...more }: ClaimParts = {}) => ({
  metadata: { namespace: 'team-a', name, ...more.metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: more.storage ?? '1Gi' } },
    storageClassName: more.className ?? 'net-now',
    ...(volumeName ? { volumeName } : {}),
    ...more.spec,
  },
  status: { phase, ...(phase === 'Bound' ? { capacity: { storage: '1Gi' } } : {}), ...more.status },
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
  { phase = 'Available', claim, policy = 'Delete', ...more }: VolumeParts = {},
) => ({
  metadata: { name, ...more.metadata },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'shelf',
    persistentVolumeReclaimPolicy: policy,
    csi: { driver: more.driver ?? 'net.sim', volumeHandle: more.handle ?? name },
    ...(claim ? { claimRef: { namespace: 'team-a', name: claim, uid: `uid-${claim}` } } : {}),
    ...more.spec,
  },
  status: { phase },
})

export const aNode = (name: string, spec: object = {}) => ({
  metadata: { name, labels: { 'topology.sim/node': name } },
  spec,
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

export const aPod = (name: string, claims: readonly string[], more: { spec?: object; status?: object } = {}) => ({
  metadata: { namespace: 'team-a', name },
  spec: {
    containers: [{ name: 'main', volumeMounts: claims.map((claim) => ({ name: claim, mountPath: `/${claim}` })) }],
    volumes: claims.map((claim) => ({ name: claim, persistentVolumeClaim: { claimName: claim } })),
    ...more.spec,
  },
  status: { ...more.status },
})

export const aClass = (name: string, provisioner: DriverName, volumeBindingMode = 'Immediate') => ({
  metadata: { name },
  provisioner,
  volumeBindingMode,
  reclaimPolicy: 'Delete',
})
