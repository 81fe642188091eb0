// Settings of the fake driver: pools, nodes, capabilities and limits, as plain data.
import type { ControllerCapability, NodeCapability, PluginService, VolumeExpansion } from '../facts.ts'

export interface FakeSettings {
  readonly name: string
  readonly version: string
  readonly plugin: readonly PluginService[]
  readonly expansion: readonly VolumeExpansion[]
  readonly controller: readonly ControllerCapability[]
  readonly node: readonly NodeCapability[]
  readonly pools: readonly FakePool[]
  readonly nodes: readonly FakeNode[]
  /** The size of a volume created without a capacity range. */
  readonly defaultBytes: number
  /** Sizes are rounded up to multiples of this size. */
  readonly roundToBytes: number
  /** A volume's maximum size. Larger requests fail with OUT_OF_RANGE. */
  readonly maximumBytes: number
  /** Accepted keys of `parameters` in addition to `pool` and `copies`. Undefined to accept any key. */
  readonly parameterKeys: readonly string[] | undefined
  /** Accepted keys of `mutable_parameters`. `iops` and `throughput` take positive integers, others any text. */
  readonly mutableKeys: readonly string[]
  /** Keys required in the secrets of every call that has a `secrets` field. */
  readonly secretKeys: readonly string[]
  /** Whether volumes with a file system also require NodeExpandVolume. */
  readonly expandsOnNode: boolean
  /** Whether a call for a volume with another call in progress fails with ABORTED or runs. */
  readonly whenBusy: 'abort' | 'goOn'
}

export interface FakePool {
  readonly name: string
  readonly capacityBytes: number
  /** The topology from which its volumes are accessible. Default: everywhere. */
  readonly segments?: Readonly<Record<string, string>>
}

interface FakeNode {
  readonly id: string
  readonly segments?: Readonly<Record<string, string>>
  readonly maxVolumes?: number
}

const GI = 1024 ** 3

/** The default capabilities of the controller service: all that the fake driver implements except VOLUME_CONDITION. */
export const FAKE_CONTROLLER_CAPABILITIES: readonly ControllerCapability[] = [
  'CREATE_DELETE_VOLUME',
  'PUBLISH_UNPUBLISH_VOLUME',
  'LIST_VOLUMES',
  'GET_CAPACITY',
  'CREATE_DELETE_SNAPSHOT',
  'LIST_SNAPSHOTS',
  'CLONE_VOLUME',
  'PUBLISH_READONLY',
  'EXPAND_VOLUME',
  'LIST_VOLUMES_PUBLISHED_NODES',
  'GET_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
  'MODIFY_VOLUME',
  'GET_SNAPSHOT',
]

/** Returns the default settings with `changes`. The default is one pool of 100 GiB without topology. */
export function fakeSettings(changes: Partial<FakeSettings> = {}): FakeSettings {
  const pools = changes.pools ?? [{ name: 'pool', capacityBytes: 100 * GI }]
  const hasTopology = pools.some(({ segments }) => segments)
  return {
    name: 'fake.stowage.example',
    version: '1.0.0',
    plugin: hasTopology ? ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'] : ['CONTROLLER_SERVICE'],
    expansion: ['ONLINE'],
    controller: FAKE_CONTROLLER_CAPABILITIES,
    node: ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS', 'EXPAND_VOLUME', 'SINGLE_NODE_MULTI_WRITER'],
    nodes: [{ id: 'node-1', ...(pools[0]?.segments ? { segments: pools[0].segments } : {}) }],
    defaultBytes: GI,
    roundToBytes: 1,
    maximumBytes: Number.MAX_SAFE_INTEGER,
    parameterKeys: undefined,
    mutableKeys: ['iops', 'throughput', 'tier'],
    secretKeys: [],
    expandsOnNode: true,
    whenBusy: 'abort',
    ...changes,
    pools,
  }
}
