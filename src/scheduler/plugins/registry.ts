// All plugins, in the order in which they run. A node is rejected by the first filter that fails, so cheap filters come
// first. To add a plugin, create its folder and add a line here.
import type { Plugin, PluginHandle } from '../framework/plugin.ts'
import { createDefaultPreemption } from './default-preemption/default-preemption.ts'
import { nodeAffinity } from './node-affinity/node-affinity.ts'
import { nodePorts } from './node-ports/node-ports.ts'
import { nodeResources } from './node-resources/node-resources.ts'
import { nodeUnschedulable } from './node-unschedulable/node-unschedulable.ts'
import { createNodeVolumeLimits } from './node-volume-limits/node-volume-limits.ts'
import { taintToleration } from './taint-toleration/taint-toleration.ts'
import { unsupportedRules } from './unsupported-rules/unsupported-rules.ts'
import { createVolumeBinding } from './volume-binding/volume-binding.ts'
import { createVolumeRestrictions } from './volume-restrictions/volume-restrictions.ts'

export const REGISTRY: readonly ((handle: PluginHandle) => Plugin)[] = [
  () => unsupportedRules,
  () => nodeUnschedulable,
  () => taintToleration,
  () => nodeAffinity,
  () => nodePorts,
  () => nodeResources,
  createVolumeRestrictions,
  createVolumeBinding, // before the limits: a volume or capacity on another node is a more specific reason than a missing driver
  createNodeVolumeLimits,
  createDefaultPreemption,
]
