// Sums the sizes of a driver's volumes per node, for the placement policy `headroom`. Volumes with equal node affinity form a
// group. The affinity of a group is evaluated once per node, when the node is first scored.
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import { getOrCreate } from '../../get-or-create.ts'

interface VolumeGroup {
  /** A volume with the group's node affinity. */
  readonly example: Readonly<PersistentVolume>
  readonly bytesByVolume: Map<string, bigint>
  totalBytes: bigint
}

interface DriverVolumes {
  readonly groups: VolumeGroup[]
  readonly groupByAffinity: Map<string, VolumeGroup>
}

interface ReachableGroups {
  readonly labels: NodeInfo['labels']
  readonly groups: VolumeGroup[]
  /** The number of the driver's groups that were evaluated for the node. */
  evaluatedCount: number
}

/** Beyond this number of groups without volumes, all groups are built again. */
const EMPTY_GROUPS_MAX = 1_000

export class UsedStorage {
  readonly #readVolumes: () => Iterable<Readonly<PersistentVolume>>
  readonly #drivers = new Map<string, DriverVolumes>()
  readonly #groupByVolume = new Map<string, VolumeGroup>()
  #reachable = new WeakMap<NodeInfo, Map<string, ReachableGroups>>()
  #emptyGroupCount = 0

  constructor(readVolumes: () => Iterable<Readonly<PersistentVolume>>) {
    this.#readVolumes = readVolumes
    for (const volume of readVolumes()) this.put(volume)
  }

  put(volume: Readonly<PersistentVolume>): void {
    const name = volume.metadata.name ?? ''
    this.remove(name)
    const driver = volume.spec?.csi?.driver
    if (driver === undefined) return
    const { groups, groupByAffinity } = getOrCreate(this.#drivers, driver, () => ({
      groups: [],
      groupByAffinity: new Map(),
    }))
    const affinity = JSON.stringify(volume.spec?.nodeAffinity?.required ?? null)
    const group = getOrCreate(groupByAffinity, affinity, () => {
      const created: VolumeGroup = { example: volume, bytesByVolume: new Map(), totalBytes: 0n }
      groups.push(created)
      return created
    })
    if (group.bytesByVolume.size === 0 && group.example !== volume) this.#emptyGroupCount--
    const bytes = quantityToBytes(volume.spec?.capacity?.storage ?? '0')
    group.bytesByVolume.set(name, bytes)
    group.totalBytes += bytes
    this.#groupByVolume.set(name, group)
  }

  remove(name: string): void {
    const group = this.#groupByVolume.get(name)
    if (!group) return
    group.totalBytes -= group.bytesByVolume.get(name) ?? 0n
    group.bytesByVolume.delete(name)
    this.#groupByVolume.delete(name)
    if (group.bytesByVolume.size === 0 && ++this.#emptyGroupCount > EMPTY_GROUPS_MAX) this.#rebuild()
  }

  #rebuild(): void {
    this.#drivers.clear()
    this.#groupByVolume.clear()
    this.#reachable = new WeakMap()
    this.#emptyGroupCount = 0
    for (const volume of this.#readVolumes()) this.put(volume)
  }

  /** Returns the total size of the driver's volumes that the node can reach. */
  bytesOn(node: NodeInfo, driver: string): bigint {
    const volumes = this.#drivers.get(driver)
    if (!volumes) return 0n
    const byDriver = getOrCreate(this.#reachable, node, () => new Map<string, ReachableGroups>())
    let reachable = byDriver.get(driver)
    if (!reachable || reachable.labels !== node.labels) {
      reachable = { labels: node.labels, groups: [], evaluatedCount: 0 }
      byDriver.set(driver, reachable)
    }
    for (; reachable.evaluatedCount < volumes.groups.length; reachable.evaluatedCount++) {
      const group = volumes.groups[reachable.evaluatedCount]!
      if (isReachableFrom(group.example, node)) reachable.groups.push(group)
    }
    return reachable.groups.reduce((sum, { totalBytes }) => sum + totalBytes, 0n)
  }
}
