// The metrics of the attach-detach controllers, under their Kubernetes names. Gauges are computed from the caches when
// they are scraped.
import { Counter, Gauge, type Registry } from 'prom-client'
import { pluginNameOf } from '../../volumes/attachment-names.ts'
import type { Volume } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import type { ForceDetachReason } from './plan-volume.ts'
import { claimsOfAssignedPod } from './pod-use.ts'
import { desiredAttachments } from './read-volume.ts'

export interface AttachingMetrics {
  countForcedDetach(reason: ForceDetachReason): void
  /** Computes the gauges from this context until the returned function is called. */
  collectFrom(context: AttachingContext): () => void
}

export function createAttachingMetrics(registry: Registry): AttachingMetrics {
  const registers = [registry]
  let context: AttachingContext | undefined
  const forcedDetaches = new Counter({
    name: 'attachdetach_controller_forced_detaches',
    help: 'Volumes detached from a node that had not reported them as unmounted.',
    labelNames: ['reason'],
    registers,
  })
  new Gauge({
    name: 'attachdetach_controller_total_volumes',
    help: 'Volumes that should be attached (desired) and that are or may be attached (actual), once per node.',
    labelNames: ['plugin_name', 'state'],
    registers,
    collect() {
      this.reset()
      if (!context) return
      for (const volume of volumesOfPods(context)) {
        const { driver = '' } = volume.spec?.csi ?? {}
        const desiredCount = driver ? desiredAttachments(volume, context).length : 0
        if (desiredCount > 0)
          this.inc({ plugin_name: pluginNameOf(driver), state: 'desired_state_of_world' }, desiredCount)
      }
      for (const { spec } of context.attachments.list()) {
        this.inc({ plugin_name: pluginNameOf(spec.attacher), state: 'actual_state_of_world' })
      }
    },
  })
  new Gauge({
    name: 'storage_count_attachable_volumes_in_use',
    help: 'Attachable volumes in use by pods, per node, once per pod.',
    labelNames: ['node', 'volume_plugin'],
    registers,
    collect() {
      this.reset()
      if (!context) return
      for (const volume of volumesOfPods(context)) {
        const { driver = '' } = volume.spec?.csi ?? {}
        if (!driver) continue
        for (const { nodeName, pods } of desiredAttachments(volume, context)) {
          this.inc({ node: nodeName, volume_plugin: pluginNameOf(driver) }, pods.length)
        }
      }
    },
  })
  return {
    countForcedDetach: (reason) => forcedDetaches.inc({ reason }),
    collectFrom(newContext) {
      context = newContext
      return () => {
        if (context === newContext) context = undefined
      }
    },
  }
}

/** Returns the volumes that pods on nodes may use. The others, of which a cluster can have many more, have no desired attachment. */
function volumesOfPods({ pods, claims, volumes }: AttachingContext): ReadonlySet<Volume> {
  const names = pods.list().flatMap((pod) => claimsOfAssignedPod(pod).map((key) => claims.get(key)?.spec?.volumeName))
  return new Set([...new Set(names)].map((name) => name && volumes.get({ name })).filter((volume) => !!volume))
}
