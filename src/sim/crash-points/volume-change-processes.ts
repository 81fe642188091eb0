// Runs the production controllers that change volumes, and the node agent's expansion, as simulated processes.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import { createExpanding, type ExpandingDeps } from '../../controllers/expanding/index.ts'
import type { ModificationDriver } from '../../controllers/modifying/index.ts'
import { createVolumeChangeControllers, type VolumeChange } from '../../controllers/volume-changes/index.ts'
import { csiVolumeOf } from '../../nodeagent/csi/csi-volume.ts'
import { createExpandVolume, type ExpandDeps } from '../../nodeagent/csi/expand-volume.ts'
import type { Publication } from '../../nodeagent/csi/mount-records.ts'
import type { RegisteredDriver } from '../../nodeagent/registration/drivers.ts'
import { createController, createEventRecorder, done, retryAfter, source } from '../../runtime/index.ts'
import type { ProcessContext } from '../engine/process-host.ts'
import { targetOf } from './bound-claims.ts'
import { connectDriver, controllerDeps } from './claim-controllers.ts'
import { DRIVER, NAMESPACE } from './crash-point.ts'

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
