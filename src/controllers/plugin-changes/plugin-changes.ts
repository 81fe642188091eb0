// Creates the controllers that expand and modify a plugin's volumes. For a plugin without `expand`, expansion only
// records an event; the volumes of a plugin without `modify` are not modified.
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { ControllerCapability, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import type { EventRecorder, LeaderElection } from '../../runtime/index.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { createExpanding, createExpansionUnsupported } from '../expanding/index.ts'
import { createModifying } from '../modifying/index.ts'
import { toExistingVolume } from '../provisioning/plugin/check-result.ts'
import type { AnyProvisionerPlugin } from '../provisioning/plugin/contract.ts'
import {
  createVolumeChangeControllers,
  type VolumeChange,
  type VolumeChangeControllers,
  type VolumeChangeOptions,
} from '../volume-changes/index.ts'
import { createPluginDriver } from './plugin-driver.ts'

interface PluginChangeDeps extends ControllerDeps {
  readonly plugin: AnyProvisionerPlugin
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** Time after which the signal of a call is aborted. The call is still awaited. Default: 10 minutes. */
  readonly callTimeoutMs?: number
  readonly options?: VolumeChangeOptions
}

const CALL_TIMEOUT_MS = 600_000

export function createPluginChanges(deps: PluginChangeDeps): VolumeChangeControllers {
  const { plugin, callTimeoutMs = CALL_TIMEOUT_MS, options, ...sharedDeps } = deps
  const { caches, clock, log, events } = sharedDeps
  const volumes = caches.of(persistentVolumeKind)
  const driver = createPluginDriver(plugin, { clock, log, callTimeoutMs, findVolume: (name) => volumes.get(name) })
  const facts = factsOf(plugin.name)
  const volumeIdOf = ({ metadata }: Readonly<PersistentVolume>) => metadata.name ?? ''
  const changes: VolumeChange[] = [
    plugin.expand
      ? createExpanding({
          ...sharedDeps,
          driver,
          facts,
          fieldsOf: (volume) => ({ volumeId: volumeIdOf(volume) }),
          options: { checksCapacity: false, handlesInUse: false },
        })
      : createExpansionUnsupported({ facts, events, message: `${plugin.name} does not expand volumes.` }),
  ]
  if (plugin.modify) {
    const modification = { driver, facts: factsOf(plugin.csiDriver ?? ''), volumeIdOf, gates: parseFeatureGates('') }
    changes.push(createModifying({ ...sharedDeps, ...modification, options: { handlesInUse: false } }))
  }
  return createVolumeChangeControllers({
    ...sharedDeps,
    facts,
    isOwnVolume: (volume) => isOwnVolume(volume, plugin),
    changes,
    options,
  })
}

const CAPABILITIES: ReadonlySet<ControllerCapability> = new Set(['EXPAND_VOLUME', 'MODIFY_VOLUME'])

const factsOf = (name: string): DriverFacts => ({
  name,
  version: '',
  plugin: new Set(),
  expansion: new Set(),
  controller: CAPABILITIES,
  node: new Set(),
})

function isOwnVolume(volume: Readonly<PersistentVolume>, plugin: AnyProvisionerPlugin): boolean {
  if (annotationOf(volume, PROVISIONED_BY) !== plugin.name) return false
  try {
    return plugin.owns?.(toExistingVolume(volume)) ?? true
  } catch {
    return false // the plugin cannot own a volume that it fails to read
  }
}
