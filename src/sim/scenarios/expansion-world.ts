// What the scenarios of growth have in common: claims that are bound to volumes of a driver and mounted on a node, and
// the production code that grows them as processes: the controller's part, and the node agent's.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { silentLog } from '../../base/log.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import { createExpanding, type ExpandingDeps } from '../../controllers/expanding/index.ts'
import { createVolumeChangeControllers, type VolumeChange } from '../../controllers/volume-changes/index.ts'
import { CSI_CODES, type CsiDriver, type CsiFailureCode, serializeCalls } from '../../csi/index.ts'
import { csiVolumeOf } from '../../nodeagent/csi/csi-volume.ts'
import { createExpandVolume, type ExpandDeps } from '../../nodeagent/csi/expand-volume.ts'
import { createCacheSet, createController, createEventRecorder, done, retryAfter, source } from '../../runtime/index.ts'
import type { SimDriver } from '../driver.ts'
import { premadeVolume } from '../premade-volume.ts'
import type { Env } from '../process.ts'
import { factsOf } from './claims-become-volumes-processes.ts'

const GI = 1024 ** 3
export const gi = (size: number): number => size * GI
export const handleOf = (claim: string): string => `vol-${claim}`
const targetOf = (handle: string): string => `/pods/${handle}`
const NODE_ID = 'node-1'

/** Errors after which the driver may have done it or not. */
export const TELLING_NOTHING: readonly CsiFailureCode[] = ['UNAVAILABLE', 'ABORTED', 'DEADLINE_EXCEEDED', 'CANCELLED']
export const DRIVER_ERRORS = CSI_CODES.filter(
  (code): code is CsiFailureCode => code !== 'OK' && code !== 'UNIMPLEMENTED',
)

/** Claims of 1Gi, each bound to a volume that is mounted on the node. */
export async function boundClaims(client: Client, driver: SimDriver, names: readonly string[], hard: string) {
  const provisioner = driver.settings.name
  await client.create(storageClassKind, {
    metadata: { name: 'grows' },
    provisioner,
    allowVolumeExpansion: true,
  } as never)
  await client.create(resourceQuotaKind, {
    metadata: { namespace: 'default', name: 'team' },
    spec: { hard: { 'requests.storage': hard } },
  } as never)
  for (const name of names) {
    mountedVolume(driver, handleOf(name))
    const size = { storage: '1Gi' }
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'grows', volumeName: `pv-${name}` }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name },
      spec: { ...spec, resources: { requests: size } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: size,
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'grows',
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name, uid: claim.metadata.uid },
        csi: { driver: provisioner, volumeHandle: handleOf(name) },
      },
    } as never)
    const status = { phase: 'Bound', capacity: size, accessModes: ['ReadWriteOnce'] }
    const ref = { namespace: 'default', name }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { status } }, { subresource: 'status' })
  }
}

function mountedVolume(driver: SimDriver, handle: string): void {
  premadeVolume(driver, handle, GI)
  const capability = 'mount SINGLE_NODE_WRITER'
  const volume = driver.state().volumes[handle]!
  const use = { capability, isReadonly: false }
  driver.state().volumes[handle] = {
    ...volume,
    createRequest: { ...volume.createRequest, capabilities: [capability] },
    onNodes: { [NODE_ID]: { staged: {}, published: { [targetOf(handle)]: use }, fileSystemBytes: GI } },
  }
}

/** A process's ways to the server: nobody's data depends on what it tells people there. */
export interface Ways {
  readonly client: Client
  readonly chatter: Client
}

/** The controller's part. */
export const runExpander = (env: Env, ways: Ways, driver: CsiDriver): Promise<void> =>
  runChanges(env, ways, driver, { component: 'expander', changesOf: (deps) => [createExpanding(deps)] })

export interface Changes {
  readonly component: string
  /** In the order in which they come first. */
  changesOf(deps: ExpandingDeps): VolumeChange[]
  /** How many claims are worked on at once, if not as many as usual. */
  readonly workers?: number
}

/** What changes volumes, in one process. */
export async function runChanges(env: Env, { client, chatter }: Ways, driver: CsiDriver, what: Changes): Promise<void> {
  const { component, changesOf, workers } = what
  const { clock, random, signal } = env
  const csi = serializeCalls(driver)
  const facts = await factsOf(csi, env)
  setMaxListeners(0, signal) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random })
  const deps = { client, caches, clock, random, log: silentLog }
  const events = createEventRecorder({ ...deps, client: chatter, component })
  const changes = changesOf({ ...deps, driver: csi, facts, events })
  void events.run(signal)
  await createVolumeChangeControllers({ ...deps, facts, changes, options: workers ? { workers } : {} }).run(signal)
}

/** The node's part, for every claim there is. */
export function runGrowingNode(env: Env, { client, chatter }: Ways, driver: CsiDriver, driverName: string): void {
  const { clock, random, signal } = env
  setMaxListeners(0, signal)
  const caches = createCacheSet({ client, clock, random })
  const [claims, volumes] = [caches.of(persistentVolumeClaimKind), caches.of(persistentVolumeKind)]
  const events = createEventRecorder({ client: chatter, clock, random, log: silentLog, component: 'node' })
  const registered = { name: driverName, csi: serializeCalls(driver), can: new Set(['EXPAND_VOLUME']) }
  const known = {
    drivers: { get: () => registered },
    books: { publication: () => ({}), stagingOf: () => undefined },
    metrics: { during: (_driver: string, _operation: string, work: () => Promise<unknown>) => work() },
  }
  const grow = createExpandVolume({ client, events, clock, random, ...known } as unknown as ExpandDeps)
  const pod = { metadata: { namespace: 'default', name: 'user', uid: 'user' }, spec: {} } as never
  const controller = createController({
    name: 'node',
    clock,
    random,
    log: silentLog,
    sources: [
      source({ cache: claims, keysOf: (claim) => [keyOfObject(claim)] }),
      source({ cache: volumes, keysOf: ({ spec }) => (spec?.claimRef ? [`default/${spec.claimRef.name}`] : []) }),
    ],
    async reconcile(key) {
      const claim = claims.get(key)
      const pv = volumes.get(claim?.spec?.volumeName ?? '')
      const volume = claim && pv && csiVolumeOf(pv, claim, { isReadOnly: false })
      if (!volume) return done
      const { handle, mode } = volume
      const publication = {
        uid: 'user',
        volume: volume.volume,
        mode,
        driver: driverName,
        handle,
        target: targetOf(handle),
      }
      const afterMs = await grow(
        { pod, volume, publication: { ...publication, isInline: false, attachmentId: '' } },
        signal,
      )
      return afterMs === undefined ? done : retryAfter(afterMs, 'the node tries again')
    },
  })
  void events.run(signal)
  void controller.run(signal)
}
