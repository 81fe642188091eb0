// What the store holds now of everything that decides where pods go, kept up to date commit by commit over every life of
// the server. Reads the store alone, and nothing that a scheduler believes.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { collectionPrefix, decodeStored } from '../../apiserver/index.ts'
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../cluster.ts'

export interface SchedulingView {
  /** By `namespace/name`, or by name where there are no namespaces. */
  readonly pods: ReadonlyMap<string, Readonly<Pod>>
  readonly claims: ReadonlyMap<string, Readonly<PersistentVolumeClaim>>
  readonly volumes: ReadonlyMap<string, Readonly<PersistentVolume>>
  readonly nodes: ReadonlyMap<string, Readonly<Node>>
  readonly capacities: ReadonlyMap<string, Readonly<CSIStorageCapacity>>
  /** Keys of claims that were deleted at some time; another may have the name since. */
  readonly deletedClaims: ReadonlySet<string>
  /** Changes of pods so far. */
  readonly podChanges: number
  /** When something last changed, by the world's time. */
  readonly changedMs: number
  /** Called when a pod has been given a node. */
  onBound(check: (pod: Readonly<Pod>) => void): void
}

/** What one commit changes under a prefix arrives together. */
const WATCHED = ['core/', collectionPrefix(csiStorageCapacityKind)]

export function createSchedulingView(cluster: Cluster): SchedulingView {
  const pods = new Map<string, Readonly<Pod>>()
  const claims = new Map<string, Readonly<PersistentVolumeClaim>>()
  const volumes = new Map<string, Readonly<PersistentVolume>>()
  const nodes = new Map<string, Readonly<Node>>()
  const capacities = new Map<string, Readonly<CSIStorageCapacity>>()
  const collections: readonly (readonly [string, Map<string, any>])[] = (
    [
      [podKind, pods],
      [persistentVolumeClaimKind, claims],
      [persistentVolumeKind, volumes],
      [nodeKind, nodes],
      [csiStorageCapacityKind, capacities],
    ] as const
  ).map(([kind, objects]) => [collectionPrefix(kind as Kind), objects] as const)
  const deletedClaims = new Set<string>()
  const checks: ((pod: Readonly<Pod>) => void)[] = []
  let podChanges = 0
  let changedMs = cluster.world.nowMs

  /** A server that comes back shows what it kept: to us that is one commit. */
  async function attach(store: Store, watched: string): Promise<void> {
    const { entries, revision } = await store.list({ prefix: watched })
    const present = new Set(entries.map(({ key }) => key))
    for (const [prefix, objects] of collections) {
      if (!prefix.startsWith(watched)) continue
      for (const name of [...objects.keys()]) if (!present.has(prefix + name)) take(prefix + name, undefined, revision)
    }
    for (const { key, value, modRevision } of entries) take(key, value, modRevision)
    const onEvents = (
      events: readonly { key: string; revision: number; entry?: { value: Uint8Array } | undefined }[],
    ) => {
      const bound = events.flatMap(({ key, revision: at, entry }) => take(key, entry?.value, at) ?? [])
      for (const pod of bound) for (const check of checks) check(pod)
    }
    store.watch({ prefix: watched, afterRevision: revision, onEvents, onEnd: () => {} })
  }

  /** The pod, if this gave it a node. */
  function take(key: string, value: Uint8Array | undefined, revision: number): Readonly<Pod> | undefined {
    const found = collections.find(([prefix]) => key.startsWith(prefix))
    if (!found) return undefined
    const [prefix, objects] = found
    const name = key.slice(prefix.length)
    const old = objects.get(name)
    if (value === undefined) objects.delete(name)
    else if (old?.metadata.resourceVersion === String(revision)) return undefined
    else objects.set(name, decodeStored({ value, modRevision: revision }))
    changedMs = cluster.world.nowMs
    if (objects === claims && value === undefined) deletedClaims.add(name)
    if (objects !== pods) return undefined
    podChanges++
    const pod = pods.get(name)
    return pod?.spec?.nodeName && !old?.spec?.nodeName ? pod : undefined
  }

  cluster.follow((store) => {
    for (const watched of WATCHED) void attach(store, watched)
  })
  return {
    pods,
    claims,
    volumes,
    nodes,
    capacities,
    deletedClaims,
    get podChanges() {
      return podChanges
    },
    get changedMs() {
      return changedMs
    },
    onBound: (check) => void checks.push(check),
  }
}
