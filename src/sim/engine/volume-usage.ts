// The usage of mounted volumes in the simulator. Each volume fills up at its own rate for some minutes; its node measures it once
// per minute, so that automatic growth often sees the size before the last expansion.
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CacheSet } from '../../runtime/index.ts'
import type { UsageByClaim, VolumeUsage } from '../../volumes/volume-usage.ts'
import { type DriverName, GI } from '../plan/catalog.ts'
import type { HostDeps } from './process-host.ts'

const MEASURE_INTERVAL_MS = 60_000
const FILL_DURATION_MS = 600_000
/** The fastest volume gets this many bytes per minute; the others a share of it. */
const FASTEST_BYTES_PER_MINUTE = GI

export interface SimUsage {
  read(caches: CacheSet): UsageByClaim
}

export function createSimUsage({ simulation, drivers }: Pick<HostDeps, 'simulation' | 'drivers'>): SimUsage {
  const measurements = new Map<string, { readonly measuredMs: number; readonly usage: VolumeUsage }>()
  const firstMs = new Map<string, number>()

  function measure(asset: string, sizeBytes: number): VolumeUsage {
    const { nowMs } = simulation
    const startMs = firstMs.get(asset) ?? nowMs
    firstMs.set(asset, startMs)
    const filledBytes = (rateOf(asset) * Math.min(nowMs - startMs, FILL_DURATION_MS)) / 60_000
    const usedBytes = Math.min(sizeBytes, Math.floor(filledBytes))
    return { usedBytes, freeBytes: sizeBytes - usedBytes }
  }

  return {
    read(caches) {
      const usages = new Map<string, VolumeUsage>()
      for (const { spec } of caches.of(persistentVolumeKind).list()) {
        const { csi, claimRef } = spec ?? {}
        const volume = csi && drivers.get(csi.driver as DriverName)?.state().volumes[csi.volumeHandle]
        const sizes = Object.values(volume?.onNodes ?? {}).map(({ fileSystemBytes }) => fileSystemBytes)
        if (!csi || !claimRef || sizes.length === 0) continue
        const asset = `${csi.driver}^${csi.volumeHandle}`
        const last = measurements.get(asset)
        const isDue = !last || simulation.nowMs - last.measuredMs >= MEASURE_INTERVAL_MS
        const usage = isDue ? measure(asset, Math.max(...sizes)) : last.usage
        if (isDue) measurements.set(asset, { measuredMs: simulation.nowMs, usage })
        usages.set(`${claimRef.namespace}/${claimRef.name}`, usage)
      }
      return usages
    },
  }
}

/** Returns the bytes per minute of a volume: between a fifth and all of the fastest, by its name. */
function rateOf(asset: string): number {
  let hash = 0
  for (const character of asset) hash = (hash * 31 + character.charCodeAt(0)) % 1_000
  return FASTEST_BYTES_PER_MINUTE * (0.2 + (0.8 * hash) / 1_000)
}
