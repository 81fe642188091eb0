// Counts the topology keys of each driver: those it has registered on nodes, and those by which its volumes are located.
// Reports a driver when one of its keys begins or ceases to be used.
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { keysOfVolume } from './plan-topology.ts'

export interface KeyCounts {
  isRegistered(driver: string, key: string): boolean
  /** Returns the keys in the node affinity of the driver's volumes, sorted. */
  volumeKeysOf(driver: string): readonly string[]
  /** Counts until the returned function is called. */
  follow(onChange: (driver: string) => void): () => void
}

export function createKeyCounts(csiNodes: Cache<CSINode>, volumes: Cache<PersistentVolume>): KeyCounts {
  const [registeredKeys, volumeKeys] = [new Counts(), new Counts()]

  function follow(onChange: (driver: string) => void): () => void {
    const add = (counts: Counts, driver: string, keys: readonly string[], amount: 1 | -1) => {
      if (keys.filter((key) => counts.add(driver, key, amount)).length > 0) onChange(driver)
    }
    const addNode = ({ spec }: Readonly<CSINode>, amount: 1 | -1) => {
      for (const { name, topologyKeys = [] } of spec.drivers) add(registeredKeys, name, topologyKeys, amount)
    }
    const addVolume = (volume: Readonly<PersistentVolume>, amount: 1 | -1) => {
      const found = keysOfVolume(volume)
      if (found) add(volumeKeys, found.driver, found.keys, amount)
    }
    const stops = [
      csiNodes.subscribe({
        added: (node) => addNode(node, 1),
        updated(next, old) {
          addNode(next, 1)
          addNode(old, -1)
        },
        deleted: (node) => addNode(node, -1),
      }),
      volumes.subscribe({
        added: (volume) => addVolume(volume, 1),
        updated(next, old) {
          addVolume(next, 1)
          addVolume(old, -1)
        },
        deleted: (volume) => addVolume(volume, -1),
      }),
    ]
    return () => {
      for (const stop of stops) stop()
      registeredKeys.clear()
      volumeKeys.clear()
    }
  }

  return {
    isRegistered: (driver, key) => registeredKeys.has(driver, key),
    volumeKeysOf: (driver) => volumeKeys.keysOf(driver),
    follow,
  }
}

/** Numbers by driver and key. A key whose number is 0 is removed, so the size is bounded by the objects that are counted. */
class Counts {
  readonly #byDriver = new Map<string, Map<string, number>>()

  /** Returns whether the key has begun or ceased to be used. */
  add(driver: string, key: string, amount: 1 | -1): boolean {
    const counts = this.#byDriver.get(driver) ?? new Map<string, number>()
    const previous = counts.get(key) ?? 0
    const current = previous + amount
    if (current > 0) counts.set(key, current)
    else counts.delete(key)
    if (counts.size > 0) this.#byDriver.set(driver, counts)
    else this.#byDriver.delete(driver)
    return previous > 0 !== current > 0
  }

  has = (driver: string, key: string): boolean => this.#byDriver.get(driver)?.has(key) ?? false
  keysOf = (driver: string): readonly string[] => [...(this.#byDriver.get(driver)?.keys() ?? [])].sort()
  clear = (): void => this.#byDriver.clear()
}
