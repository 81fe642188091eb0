// Adds a volume to the simulated driver without a CreateVolume call.
import type { SimDriver } from './driver.ts'

export function addPremadeVolume(driver: SimDriver, id: string, capacityBytes: number): void {
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
