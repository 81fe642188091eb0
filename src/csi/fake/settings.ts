// What kind of storage the fake driver is: its pools, its nodes and what it says it can do. All of it is plain data.
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
  /** The size of a volume for which none was asked. */
  readonly defaultBytes: number
  /** Sizes are rounded up to multiples of this. */
  readonly roundToBytes: number
  /** No volume is larger; asking for more is OUT_OF_RANGE. */
  readonly maximumBytes: number
  /** Accepted keys of `parameters`, besides `pool` and `copies`. Undefined: any. */
  readonly parameterKeys: readonly string[] | undefined
  /** Accepted keys of `mutable_parameters`. `iops` and `throughput` take positive integers, others any text. */
  readonly mutableKeys: readonly string[]
  /** Keys that must be among the secrets of every call that can carry some. */
  readonly secretKeys: readonly string[]
  /** Whether mounted volumes also have to be expanded on their node. */
  readonly expandsOnNode: boolean
  /** What a call meets while another about the same volume is at work: ABORTED, or nothing in its way. */
  readonly whenBusy: 'abort' | 'goOn'
}

export interface FakePool {
  readonly name: string
  readonly capacityBytes: number
  /** Where its volumes can be reached. Undefined: everywhere. */
  readonly segments?: Readonly<Record<string, string>>
}

export interface FakeNode {
  readonly id: string
  readonly segments?: Readonly<Record<string, string>>
  readonly maxVolumes?: number
}

const GI = 1024 ** 3

export const EVERY_CONTROLLER_CAPABILITY: readonly ControllerCapability[] = [
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

/** Everything it can do is on, and one pool of 100 GiB is reached from everywhere, unless `changes` say otherwise. */
export function fakeSettings(changes: Partial<FakeSettings> = {}): FakeSettings {
  const pools = changes.pools ?? [{ name: 'pool', capacityBytes: 100 * GI }]
  const hasTopology = pools.some(({ segments }) => segments)
  return {
    name: 'fake.stowage.example',
    version: '1.0.0',
    plugin: hasTopology ? ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'] : ['CONTROLLER_SERVICE'],
    expansion: ['ONLINE'],
    controller: EVERY_CONTROLLER_CAPABILITY,
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
