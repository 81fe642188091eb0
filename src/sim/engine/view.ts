// An indexed copy of the store's contents for users and checkers. It is updated with each commit, also across restarts of the
// server, and contains nothing of the state of controllers.
import type { Kind } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import type { Event } from '../../api/kinds/event/event-schema.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { limitRangeKind } from '../../api/kinds/limit-range/limit-range.ts'
import type { LimitRange } from '../../api/kinds/limit-range/limit-range-schema.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import type { Namespace } from '../../api/kinds/namespace/namespace-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { collectionPrefix, decodeStored } from '../../apiserver/index.ts'
import type { ClaimsAndVolumes } from '../checkers/bindings.ts'
import type { Cluster } from '../environment/cluster.ts'
import { MEMORY_PLUGIN_ASSETS, MEMORY_PLUGIN_PATH } from '../plan/catalog.ts'
import { followStore, type StoreWrite } from './follow-store.ts'

/** The kinds in the view, by the keys that checkers use. */
interface Kinds {
  claim: PersistentVolumeClaim
  volume: PersistentVolume
  pod: Pod
  node: Node
  csiNode: CSINode
  csiDriver: CSIDriver
  attachment: VolumeAttachment
  class: StorageClass
  attributesClass: VolumeAttributesClass
  quota: ResourceQuota
  limitRange: LimitRange
  capacity: CSIStorageCapacity
  namespace: Namespace
  event: Event
  lease: Lease
  set: StatefulSet
}

export type KindKey = keyof Kinds
export type ObjectOf<W extends KindKey> = Readonly<Kinds[W]>
type Collection<W extends KindKey> = ReadonlyMap<string, ObjectOf<W>>

const KINDS: Readonly<Record<KindKey, Kind>> = {
  claim: persistentVolumeClaimKind,
  volume: persistentVolumeKind,
  pod: podKind,
  node: nodeKind,
  csiNode: csiNodeKind,
  csiDriver: csiDriverKind,
  attachment: volumeAttachmentKind,
  class: storageClassKind,
  attributesClass: volumeAttributesClassKind,
  quota: resourceQuotaKind,
  limitRange: limitRangeKind,
  capacity: csiStorageCapacityKind,
  namespace: namespaceKind,
  event: eventKind,
  lease: leaseKind,
  set: statefulSetKind,
}

/** An object of any kind of the view. */
// biome-ignore lint/suspicious/noExplicitAny: the kind is known at run time only
type AnyObject = any

/** A change of one object. */
type Change = { readonly [W in KindKey]: ChangeOf<W> }[KindKey]
interface ChangeOf<W extends KindKey> {
  readonly of: W
  /** `namespace/name`, or the name of a cluster-scoped object. */
  readonly key: string
  readonly old: ObjectOf<W> | undefined
  readonly next: ObjectOf<W> | undefined
}

export interface View {
  /** Keys are `namespace/name`, or the name of a cluster-scoped object. */
  readonly claims: Collection<'claim'>
  readonly volumes: Collection<'volume'>
  readonly pods: Collection<'pod'>
  readonly nodes: Collection<'node'>
  readonly csiNodes: Collection<'csiNode'>
  readonly csiDrivers: Collection<'csiDriver'>
  readonly attachments: Collection<'attachment'>
  readonly classes: Collection<'class'>
  readonly attributesClasses: Collection<'attributesClass'>
  readonly quotas: Collection<'quota'>
  readonly limitRanges: Collection<'limitRange'>
  readonly capacities: Collection<'capacity'>
  readonly namespaces: Collection<'namespace'>
  readonly events: Collection<'event'>
  readonly leases: Collection<'lease'>
  readonly sets: Collection<'set'>

  claimOfUid(uid: string): ObjectOf<'claim'> | undefined
  /** Returns the PersistentVolumes of a driver volume; more than one violates an invariant. */
  volumesOf(driver: string, handle: string): readonly ObjectOf<'volume'>[]
  /** Returns the stored events about an object, in the order of their last write. */
  eventsOf(uid: string): readonly ObjectOf<'event'>[]
  /** Counts the objects of a collection (`core/configmaps`) in a namespace, including kinds that are not in the view. */
  countOf(collection: string, namespace: string): number
  /** Returns the existing keys under a prefix, without the prefix, with their revisions. */
  revisionsUnder(prefix: string): ReadonlyMap<string, number>
  /** Returns the newest revision at which a key was observed, existing or deleted. */
  revisionOf(key: string): { readonly revision: number; readonly isDeleted: boolean } | undefined

  readonly claimsAndVolumes: ClaimsAndVolumes
  /** When something changed last, in virtual time; events and leases do not count. */
  readonly changedMs: number
  /** Calls `check` after each commit, or once after several that became visible together. */
  onCommit(check: (changes: readonly Change[]) => void): void
  /** Calls `check` with every write of any kind, before the checks of `onCommit`. */
  onWrites(check: (writes: readonly StoreWrite[]) => void): void
}

const LEASES = 'coordination.k8s.io/'
const EVENTS = [collectionPrefix(eventKind), 'events.k8s.io/']

export function createView(cluster: Cluster): View {
  const view = createViewWithoutStore({ nowMs: () => cluster.simulation.nowMs })
  followStore(cluster, '', view.apply)
  return view
}

/** Creates a view that receives its contents through `apply` instead of from a store. */
export function createViewWithoutStore({
  nowMs,
}: {
  nowMs(): number
}): View & { apply(writes: readonly StoreWrite[]): void } {
  const collections = Object.fromEntries(Object.keys(KINDS).map((kindKey) => [kindKey, new Map()])) as {
    [W in KindKey]: Map<string, ObjectOf<W>>
  }
  const prefixes = (Object.entries(KINDS) as [KindKey, Kind][]).map(([kindKey, kind]) => {
    return [collectionPrefix(kind), kindKey] as const
  })
  const kindOfKey = (key: string) => prefixes.find(([prefix]) => key.startsWith(prefix))
  const claimNames = new Map<string, string>()
  const volumesByAsset = new Map<string, Set<string>>()
  const eventsByUid = new Map<string, Map<string, ObjectOf<'event'>>>()
  const counts = new Map<string, number>()
  const revisions = new Map<string, { revision: number; isDeleted: boolean }>()
  const checks: ((changes: readonly Change[]) => void)[] = []
  const writeChecks: ((writes: readonly StoreWrite[]) => void)[] = []
  let changedMs = nowMs()

  function apply(writes: readonly StoreWrite[]): void {
    const newWrites = writes.filter(({ key, revision, value }) => {
      const previousWrite = revisions.get(key)
      return !(previousWrite?.revision === revision && previousWrite.isDeleted === (value === undefined))
    })
    if (newWrites.length === 0) return
    const changes = newWrites.flatMap(applyWrite)
    for (const check of writeChecks) check(newWrites)
    if (newWrites.some(({ key }) => !key.startsWith(LEASES) && !EVENTS.some((prefix) => key.startsWith(prefix)))) {
      changedMs = nowMs()
    }
    const mergedChanges = mergeChanges(changes)
    if (mergedChanges.length > 0) for (const check of checks) check(mergedChanges)
  }

  function applyWrite({ key, value, revision }: StoreWrite): Change[] {
    const existed = revisions.get(key)?.isDeleted === false
    revisions.set(key, { revision, isDeleted: value === undefined })
    if (existed !== (value !== undefined)) addCount(key, value === undefined ? -1 : 1)
    const prefixAndKind = kindOfKey(key)
    if (!prefixAndKind) return []
    const [prefix, of] = prefixAndKind
    const name = key.slice(prefix.length)
    const collection = collections[of] as Map<string, AnyObject>
    const old = collection.get(name)
    const next: AnyObject | undefined = value && decodeStored({ value, modRevision: revision })
    if (next) collection.set(name, next)
    else collection.delete(name)
    updateIndexes({ of, key: name, old, next })
    if (!old && !next) return []
    if (old && next && old.metadata.uid !== next.metadata.uid) {
      return [{ of, key: name, old, next: undefined } as Change, { of, key: name, old: undefined, next } as Change]
    }
    return [{ of, key: name, old, next } as Change]
  }

  function updateIndexes({ of, key, old, next }: { of: KindKey; key: string; old: AnyObject; next: AnyObject }): void {
    if (of === 'claim' && next) claimNames.set(next.metadata.uid ?? '', key)
    if (of === 'volume') {
      const [oldAsset, newAsset] = [assetOf(old), assetOf(next)]
      if (oldAsset && oldAsset !== newAsset) volumesByAsset.get(oldAsset)?.delete(key)
      if (newAsset) volumesByAsset.set(newAsset, (volumesByAsset.get(newAsset) ?? new Set()).add(key))
    }
    if (of === 'event') {
      const uid = (next ?? old)?.involvedObject?.uid ?? ''
      const events = eventsByUid.get(uid) ?? new Map()
      events.delete(key)
      if (next) events.set(key, next)
      if (events.size > 0) eventsByUid.set(uid, events)
      else eventsByUid.delete(uid)
    }
  }

  /** `core/configmaps/team-a/x` counts for `core/configmaps` in `team-a`. */
  function addCount(key: string, change: number): void {
    const collection = key.slice(0, key.lastIndexOf('/'))
    counts.set(collection, (counts.get(collection) ?? 0) + change)
  }

  const claimsAndVolumes: ClaimsAndVolumes = {
    claims: collections.claim,
    volumes: collections.volume,
    claimNames,
    onCommit: (check) =>
      void checks.push((changes) => {
        const relevantChanges = changes.filter((change) => change.of === 'claim' || change.of === 'volume')
        if (relevantChanges.length > 0) check(relevantChanges)
      }),
  }

  return {
    claims: collections.claim,
    volumes: collections.volume,
    pods: collections.pod,
    nodes: collections.node,
    csiNodes: collections.csiNode,
    csiDrivers: collections.csiDriver,
    attachments: collections.attachment,
    classes: collections.class,
    attributesClasses: collections.attributesClass,
    quotas: collections.quota,
    limitRanges: collections.limitRange,
    capacities: collections.capacity,
    namespaces: collections.namespace,
    events: collections.event,
    leases: collections.lease,
    sets: collections.set,
    claimOfUid(uid) {
      const claim = collections.claim.get(claimNames.get(uid) ?? '')
      return claim?.metadata.uid === uid ? claim : undefined
    },
    volumesOf: (driver, handle) =>
      [...(volumesByAsset.get(assetName(driver, handle)) ?? [])].map((name) => collections.volume.get(name)!),
    eventsOf: (uid) => [...(eventsByUid.get(uid)?.values() ?? [])],
    countOf: (collection, namespace) => counts.get(`${collection}/${namespace}`) ?? 0,
    revisionsUnder: (prefix) =>
      new Map(
        [...revisions]
          .filter(([key, { isDeleted }]) => !isDeleted && key.startsWith(prefix))
          .map(([key, { revision }]) => [key.slice(prefix.length), revision]),
      ),
    revisionOf: (key) => revisions.get(key),
    claimsAndVolumes,
    get changedMs() {
      return changedMs
    },
    onCommit: (check) => void checks.push(check),
    onWrites: (check) => void writeChecks.push(check),
    apply,
  }
}

/** Returns the store key of an object. */
export const storeKeyOf = (kindKey: KindKey, key: string): string => collectionPrefix(KINDS[kindKey]) + key

/** Returns the name that identifies a driver volume: `net.sim^vol-7`. */
export const assetName = (driver: string, handle: string): string => `${driver}^${handle}`

/** Returns the asset name of a volume's storage; undefined if neither a driver nor the in-process plugin has it. */
export const assetOf = (volume: ObjectOf<'volume'> | undefined): string | undefined =>
  volume?.spec?.csi ? assetName(volume.spec.csi.driver, volume.spec.csi.volumeHandle) : pluginAssetOf(volume)

function pluginAssetOf(volume: ObjectOf<'volume'> | undefined): string | undefined {
  const { path } = volume?.spec?.hostPath ?? {}
  return path?.startsWith(MEMORY_PLUGIN_PATH)
    ? assetName(MEMORY_PLUGIN_ASSETS, path.slice(MEMORY_PLUGIN_PATH.length))
    : undefined
}

/** Merges several changes to one object in one commit into one. */
function mergeChanges(changes: readonly Change[]): Change[] {
  if (changes.length < 2) return [...changes]
  const changesByObject = new Map<string, Change>()
  for (const change of changes) {
    const { uid = '' } = (change.next ?? change.old)!.metadata
    const id = `${change.of} ${change.key} ${uid}`
    const previousChange = changesByObject.get(id)
    changesByObject.set(id, previousChange ? ({ ...previousChange, next: change.next } as Change) : change)
  }
  return [...changesByObject.values()].filter(({ old, next }) => old || next)
}
