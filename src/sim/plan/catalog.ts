// The nodes, namespaces, drivers and classes that plans refer to, the same for every seed.
import { FAKE_CONTROLLER_CAPABILITIES, type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'

export const NODES = ['n1', 'n2', 'n3'] as const
export const NAMESPACES = ['team-a', 'team-b'] as const
export const DRIVERS = ['local.sim', 'net.sim', 'basic.sim'] as const
export type DriverName = (typeof DRIVERS)[number]

export const GI = 1024 ** 3
export const TOPOLOGY_KEY = 'topology.sim/node'
/** The capacity of local.sim on each node. */
const LOCAL_POOL_GI = 20
const NET_POOL_GI = 200
const BASIC_POOL_GI = 12
/** The largest volume of net.sim. */
export const NET_MAXIMUM_GI = 16

export const nodeIdOf = (node: string): string => `id-${node}`
export const nodeOfId = (id: string): string => id.slice('id-'.length)
const poolOf = (node: string): string => `pool-${node}`
/** Returns the node of a pool of local.sim. */
export const nodeOfPool = (pool: string): string => pool.slice('pool-'.length)

/**
 * Returns the settings of a driver. local.sim has a pool per node and does not attach, net.sim has one pool and all
 * capabilities, and basic.sim only creates and deletes volumes.
 */
export function settingsOf(
  name: DriverName,
  nodes: readonly string[],
  { netExpandsWithoutNode = false }: { readonly netExpandsWithoutNode?: boolean } = {},
): FakeSettings {
  const plainNodes = nodes.map((node) => ({ id: nodeIdOf(node) }))
  switch (name) {
    case 'local.sim':
      return fakeSettings({
        name,
        controller: FAKE_CONTROLLER_CAPABILITIES.filter((capability) => !capability.includes('PUBLISH')),
        pools: nodes.map((node) => ({
          name: poolOf(node),
          capacityBytes: LOCAL_POOL_GI * GI,
          segments: { [TOPOLOGY_KEY]: node },
        })),
        nodes: nodes.map((node) => ({ id: nodeIdOf(node), segments: { [TOPOLOGY_KEY]: node } })),
        mutableKeys: ['iops', 'throughput'],
      })
    case 'net.sim':
      return fakeSettings({
        name,
        pools: [{ name: 'net', capacityBytes: NET_POOL_GI * GI }],
        nodes: plainNodes,
        maximumBytes: NET_MAXIMUM_GI * GI,
        expandsOnNode: !netExpandsWithoutNode,
      })
    case 'basic.sim':
      return fakeSettings({
        name,
        controller: ['CREATE_DELETE_VOLUME'],
        node: [],
        expansion: [],
        expandsOnNode: false,
        pools: [{ name: 'basic', capacityBytes: BASIC_POOL_GI * GI }],
        nodes: plainNodes,
        mutableKeys: [],
      })
  }
}

export const CSI_DRIVERS: Readonly<Record<DriverName, object>> = {
  'local.sim': { attachRequired: false, storageCapacity: true },
  'net.sim': { attachRequired: true },
  'basic.sim': { attachRequired: false },
}

export interface ClassFacts {
  readonly provisioner: DriverName
  readonly volumeBindingMode: 'Immediate' | 'WaitForFirstConsumer'
  readonly reclaimPolicy: 'Delete' | 'Retain'
  readonly allowVolumeExpansion: boolean
}

/** Storage classes that exist at the start; administrators delete and recreate them. */
export const CLASSES: Readonly<Record<string, ClassFacts>> = {
  'local-wait': classOf('local.sim', 'WaitForFirstConsumer', 'Delete', true),
  'local-now': classOf('local.sim', 'Immediate', 'Delete', true),
  'net-now': classOf('net.sim', 'Immediate', 'Delete', true),
  'net-keep': classOf('net.sim', 'Immediate', 'Retain', true),
  'net-wait': classOf('net.sim', 'WaitForFirstConsumer', 'Delete', true),
  basic: classOf('basic.sim', 'Immediate', 'Delete', false),
}

function classOf(
  provisioner: DriverName,
  volumeBindingMode: ClassFacts['volumeBindingMode'],
  reclaimPolicy: ClassFacts['reclaimPolicy'],
  allowVolumeExpansion: boolean,
): ClassFacts {
  return { provisioner, volumeBindingMode, reclaimPolicy, allowVolumeExpansion }
}

export const MEMORY_PLUGIN = 'memory.stowage.example/plugin'
/** The directory of the plugin's volumes, which are hostPath volumes. */
export const MEMORY_PLUGIN_PATH = '/memory/'
/** The driver part of the asset names of the plugin's volumes. */
export const MEMORY_PLUGIN_ASSETS = 'memory'

/** Additional classes in setups with the in-process plugin: one for the plugin, and one that packs volumes with two copies. */
export const EXTRA_CLASSES: Readonly<Record<string, object>> = {
  memory: { provisioner: MEMORY_PLUGIN, volumeBindingMode: 'Immediate', reclaimPolicy: 'Delete' },
  'local-mirrored': {
    ...classOf('local.sim', 'WaitForFirstConsumer', 'Delete', true),
    metadata: { annotations: { 'stowage.dev/placement': 'pack' } },
    parameters: { copies: '2' },
  },
}

/** Additional classes in setups with storage on the nodes. They differ in the lost-volume policy or the reclaim policy. */
export const LOST_VOLUME_CLASSES: Readonly<Record<string, object>> = {
  'local-mark': lostVolumeClass('Delete', 'mark-lost'),
  'local-drop': lostVolumeClass('Delete', 'delete-after=5m'),
  'local-kept': lostVolumeClass('Retain', 'delete-after=5m'),
}

function lostVolumeClass(reclaimPolicy: ClassFacts['reclaimPolicy'], policy: string): object {
  const metadata = { annotations: { 'stowage.dev/lost-volume-policy': policy } }
  return { ...classOf('local.sim', 'WaitForFirstConsumer', reclaimPolicy, true), metadata }
}

export interface AttributesFacts {
  readonly driverName: DriverName
  readonly parameters: Readonly<Record<string, string>>
}

/** `late` does not exist at the start; `odd` has a parameter that its driver does not support. */
export const ATTRIBUTES_CLASSES: Readonly<Record<string, AttributesFacts>> = {
  silver: { driverName: 'net.sim', parameters: { iops: '500', tier: 'silver' } },
  gold: { driverName: 'net.sim', parameters: { iops: '1000', tier: 'gold' } },
  late: { driverName: 'net.sim', parameters: { tier: 'late' } },
  odd: { driverName: 'net.sim', parameters: { colour: 'red' } },
  quick: { driverName: 'local.sim', parameters: { throughput: '100' } },
}
export const INITIAL_ATTRIBUTES_CLASSES = ['silver', 'gold', 'odd', 'quick'] as const

export const PRIORITY_CLASSES: Readonly<
  Record<string, { readonly value: number; readonly preemptionPolicy?: string }>
> = {
  low: { value: -10 },
  middle: { value: 100 },
  high: { value: 1000 },
  polite: { value: 1000, preemptionPolicy: 'Never' },
}
