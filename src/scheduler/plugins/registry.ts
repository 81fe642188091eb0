// Every opinion, in the order they are asked: the cheap ones that refuse most come first. A node is refused by the first
// that minds it. Adding one: a folder, a line here, and a line in ../events-to-queue.ts for what may change its mind.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { Plugin } from '../plugin.ts'
import { hostPorts } from './host-ports/host-ports.ts'
import { knownRules } from './known-rules/known-rules.ts'
import { nodeAffinity } from './node-affinity/node-affinity.ts'
import { createReadWriteOncePod } from './read-write-once-pod/read-write-once-pod.ts'
import { resources } from './resources/resources.ts'
import { taints } from './taints/taints.ts'
import { unschedulable } from './unschedulable/unschedulable.ts'
import type { VolumeBinding } from './volume-binding/volume-binding.ts'
import type { VolumeLimits } from './volume-limits/volume-limits.ts'

export interface PluginParts {
  readonly cluster: ClusterState
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumeLimits: VolumeLimits
  readonly volumeBinding: VolumeBinding
}

export const allPlugins = ({ cluster, claims, volumeLimits, volumeBinding }: PluginParts): readonly Plugin[] => [
  knownRules,
  unschedulable,
  taints,
  nodeAffinity,
  hostPorts,
  resources,
  createReadWriteOncePod(claims, cluster),
  volumeLimits,
  volumeBinding,
]
