// Shared by the crash scenarios of expansion and modification: creates claims bound to volumes that are mounted on a node, and
// runs the production code that changes the volumes: the resizer's controllers and the node agent's expansion.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import { createExpanding, type ExpandingDeps } from '../../controllers/expanding/index.ts'
import type { ModificationDriver } from '../../controllers/modifying/index.ts'
import { createVolumeChangeControllers, type VolumeChange } from '../../controllers/volume-changes/index.ts'
import { type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'
import { csiVolumeOf } from '../../nodeagent/csi/csi-volume.ts'
import { createExpandVolume, type ExpandDeps } from '../../nodeagent/csi/expand-volume.ts'
import type { Publication } from '../../nodeagent/csi/mount-records.ts'
import type { RegisteredDriver } from '../../nodeagent/registration/drivers.ts'
import { createController, createEventRecorder, done, retryAfter, source } from '../../runtime/index.ts'
import type { ProcessContext } from '../engine/process-host.ts'
import type { SimDriver } from '../environment/driver.ts'
import { addPremadeVolume } from '../environment/premade-volume.ts'
import { GI } from '../plan/catalog.ts'
import { connectDriver, controllerDeps } from './claim-controllers.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'

export const gi = (size: number): number => size * GI
export const handleOf = (claim: string): string => `vol-${claim}`
const targetOf = (handle: string): string => `/pods/${handle}`
const NODE_ID = 'id-n1'
const MAXIMUM_GI = 12

export const expandableSettings = (): FakeSettings =>
  fakeSettings({
    name: DRIVER,
    pools: [{ name: 'pool', capacityBytes: gi(1_000) }],
    nodes: [{ id: NODE_ID }],
    maximumBytes: gi(MAXIMUM_GI),
  })

/** Creates claims of 1Gi, each bound to a volume that is mounted on the node. `hard`: quota of requests.storage. */
export async function createBoundClaims(client: Client, driver: SimDriver, names: readonly string[], hard: string) {
  await client.create(storageClassKind, {
    metadata: { name: 'expandable' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  } as never)
  await client.create(resourceQuotaKind, {
    metadata: { namespace: NAMESPACE, name: 'team' },
    spec: { hard: { 'requests.storage': hard } },
  } as never)
  for (const name of names) {
    addMountedVolume(driver, handleOf(name))
    const size = { storage: '1Gi' }
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'expandable', volumeName: `pv-${name}` }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: NAMESPACE, name },
      spec: { ...spec, resources: { requests: size } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: size,
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'expandable',
        claimRef: { kind: 'PersistentVolumeClaim', namespace: NAMESPACE, name, uid: claim.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: handleOf(name) },
      },
    } as never)
    const ref = { namespace: NAMESPACE, name }
    const boundPhase = { type: 'merge', body: { status: { phase: 'Bound' } } } as const
    await client.patch(persistentVolumeKind, { name: `pv-${name}` }, boundPhase, { subresource: 'status' })
    const status = { phase: 'Bound', capacity: size, accessModes: ['ReadWriteOnce'] }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { status } }, { subresource: 'status' })
  }
}

function addMountedVolume(driver: SimDriver, handle: string): void {
  addPremadeVolume(driver, handle, GI)
  const capability = 'mount SINGLE_NODE_WRITER'
  const volume = driver.state().volumes[handle]!
  const use = { capability, isReadonly: false }
  driver.state().volumes[handle] = {
    ...volume,
    createRequest: { ...volume.createRequest, capabilities: [capability] },
    onNodes: { [NODE_ID]: { staged: {}, published: { [targetOf(handle)]: use }, fileSystemBytes: GI } },
  }
}

export interface ChangesOptions {
  readonly component: string
  /** Creates the kinds of change that the process runs. */
  changesOf(deps: ExpandingDeps & { readonly driver: ModificationDriver }): VolumeChange[]
  /** How many claims are processed at once. Default: the default of the controllers. */
  readonly workers?: number
}

export const runExpander = (context: ProcessContext): Promise<void> =>
  runChanges(context, { component: 'expander', changesOf: (deps) => [createExpanding(deps)] })

/** Runs the controllers that change volumes, in one process. */
export async function runChanges(
  context: ProcessContext,
  { component, changesOf, workers }: ChangesOptions,
): Promise<void> {
  const { env, client } = context
  const { driver, facts } = await connectDriver(context)
  const deps = controllerDeps(env, client)
  const events = createEventRecorder({ ...deps, component })
  const changes = changesOf({ ...deps, driver, facts, events })
  const options = workers ? { workers } : {}
  await Promise.all([
    events.run(env.signal),
    createVolumeChangeControllers({ ...deps, facts, changes, options }).run(env.signal),
  ])
}

interface AgentStub {
  readonly drivers: Pick<ExpandDeps['drivers'], 'get'>
  readonly records: Pick<ExpandDeps['records'], 'publication' | 'stagingOf'>
  readonly metrics: Pick<ExpandDeps['metrics'], 'measure'>
}

/** Runs the node agent's part of the expansion of every claim. */
export async function runNodeExpansion(context: ProcessContext): Promise<void> {
  const { env, client } = context
  const { clock, random, signal } = env
  setMaxListeners(0, signal)
  const { driver } = await connectDriver(context)
  const deps = controllerDeps(env, client)
  const [claims, volumes] = [deps.caches.of(persistentVolumeClaimKind), deps.caches.of(persistentVolumeKind)]
  const events = createEventRecorder({ ...deps, component: 'node' })
  const registeredDriver: Pick<RegisteredDriver, 'name' | 'csi' | 'capabilities'> = {
    name: DRIVER,
    csi: driver,
    capabilities: new Set(['EXPAND_VOLUME']),
  }
  // A type that lists the used members makes a renamed member a compile error here.
  const agent: AgentStub = {
    drivers: { get: () => registeredDriver as RegisteredDriver },
    records: { publication: () => ({}) as Publication, stagingOf: () => undefined },
    metrics: { measure: (_driver, _operation, work) => work() },
  }
  const expand = createExpandVolume({ ...(agent as ExpandDeps), client, events, clock, random })
  const pod = { metadata: { namespace: NAMESPACE, name: 'user', uid: 'user' }, spec: {} } as never
  const controller = createController({
    name: 'node',
    clock,
    random,
    log: deps.log,
    sources: [
      source({ cache: claims, keysOf: (claim) => [keyOfObject(claim)] }),
      source({ cache: volumes, keysOf: ({ spec }) => (spec?.claimRef ? [`${NAMESPACE}/${spec.claimRef.name}`] : []) }),
    ],
    async reconcile(key) {
      const claim = claims.get(key)
      const pv = volumes.get(claim?.spec?.volumeName ?? '')
      const volume = claim && pv && csiVolumeOf(pv, claim, { isReadOnly: false })
      if (!volume) return done
      const { handle, mode } = volume
      const publication = {
        uid: 'user',
        volumeName: volume.name,
        mode,
        driver: DRIVER,
        handle,
        target: targetOf(handle),
      }
      const afterMs = await expand(
        { pod, volume, publication: { ...publication, isInline: false, attachmentId: '' } },
        signal,
      )
      return afterMs === undefined ? done : retryAfter(afterMs, 'NodeExpandVolume failed')
    },
  })
  await Promise.all([events.run(signal), controller.run(signal)])
}
