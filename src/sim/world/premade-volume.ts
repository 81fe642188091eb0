// Storage that was there before us: a volume in the simulated driver that nobody asked it for.
import type { SimDriver } from './driver.ts'

export function premadeVolume(driver: SimDriver, id: string, capacityBytes: number): void {
  const state = driver.state()
  state.volumes[id] = {
    id,
    name: id,
    order: ++state.sequence,
    pool: driver.settings.pools[0]!.name,
    copies: 1,
    capacityBytes,
    createRequest: { capabilities: [], parameters: {}, mutableParameters: {}, source: undefined },
    mutableParameters: {},
    attachments: {},
    onNodes: {},
  }
}
