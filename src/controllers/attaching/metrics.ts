// What attaching counts, under the names operators already chart. How many volumes there are is counted from the caches
// when it is asked.
import { Counter, Gauge, type Registry } from 'prom-client'
import { pluginNameOf } from '../../volumes/attachment-names.ts'
import type { AttachingContext } from './context.ts'
import type { Force } from './plan-volume.ts'
import { wishesFor } from './read-volume.ts'

export interface AttachingMetrics {
  forcedDetach(reason: Force): void
  /** Whose volumes are counted, until the returned function is called. */
  count(context: AttachingContext): () => void
}

export function createAttachingMetrics(registry: Registry): AttachingMetrics {
  const registers = [registry]
  let counted: AttachingContext | undefined
  const forced = new Counter({
    name: 'attachdetach_controller_forced_detaches',
    help: 'Volumes detached from a node that had not said it was done with them.',
    labelNames: ['reason'],
    registers,
  })
  new Gauge({
    name: 'attachdetach_controller_total_volumes',
    help: 'Volumes that should be attached, and that are attached or may be, each once per node.',
    labelNames: ['plugin_name', 'state'],
    registers,
    collect() {
      this.reset()
      if (!counted) return
      for (const volume of counted.volumes.list()) {
        const { driver = '' } = volume.spec?.csi ?? {}
        const wishes = driver ? wishesFor(volume, counted).length : 0
        if (wishes > 0) this.inc({ plugin_name: pluginNameOf(driver), state: 'desired_state_of_world' }, wishes)
      }
      for (const { spec } of counted.attachments.list()) {
        this.inc({ plugin_name: pluginNameOf(spec.attacher), state: 'actual_state_of_world' })
      }
    },
  })
  new Gauge({
    name: 'storage_count_attachable_volumes_in_use',
    help: 'Volumes of pods on a node.',
    labelNames: ['node', 'volume_plugin'],
    registers,
    collect() {
      this.reset()
      if (!counted) return
      for (const volume of counted.volumes.list()) {
        const { driver = '' } = volume.spec?.csi ?? {}
        if (!driver) continue
        for (const { nodeName, pods } of wishesFor(volume, counted)) {
          this.inc({ node: nodeName, volume_plugin: pluginNameOf(driver) }, pods.length)
        }
      }
    },
  })
  return {
    forcedDetach: (reason) => forced.inc({ reason }),
    count(context) {
      counted = context
      return () => {
        if (counted === context) counted = undefined
      }
    },
  }
}
