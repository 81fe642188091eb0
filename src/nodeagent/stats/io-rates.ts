// Reads the IO rates of a volume from the counters of its block device.
import { stat } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { createCounters } from '../../host/counters.ts'
import { formatDeviceNumber } from '../../host/device-number.ts'
import type { IoRates, Mounts } from '../../host/index.ts'

export interface IoRatesDeps {
  readonly root: string
  readonly mounts: Mounts
  readonly clock: Clock
}

/**
 * Returns a function that reads the IO rates of the volume at a path. The function returns undefined if no device is mounted
 * at the path, or if the device also contains the agent's root.
 */
export function createIoRates({ root, mounts, clock }: IoRatesDeps): (path: string) => Promise<IoRates | undefined> {
  const counters = createCounters({ clock })
  return async (path) => {
    const device = await mounts.sourceOf(path).catch(() => undefined)
    if (device === undefined) return undefined
    const [rootStats, deviceStats] = await Promise.all([stat(root, { bigint: true }), stat(device, { bigint: true })])
    if (formatDeviceNumber(rootStats.dev) === formatDeviceNumber(deviceStats.rdev)) return undefined
    return (await counters.read(device))?.rates
  }
}
