// What would otherwise take a look at every volume: which one has a name, and how much of a pool is used. Kept beside
// the state, which stays plain data. Whoever puts a volume there by hand counts it in `made`, and all is counted again.
import type { FakeState, FakeVolume } from './state.ts'

interface Tally {
  /** As many were made when this was counted. */
  made: number
  readonly idByName: Map<string, string>
  readonly usedBytes: Map<string, number>
}

const tallies = new WeakMap<FakeState, Tally>()

export function addVolume(state: FakeState, volume: FakeVolume): void {
  const tally = tallyOf(state)
  state.volumes[volume.id] = volume
  state.made = volume.order
  tally.made = state.made
  tally.idByName.set(volume.name, volume.id)
  use(tally, volume, volume.capacityBytes)
}

export function removeVolume(state: FakeState, volume: FakeVolume): void {
  const tally = tallyOf(state)
  delete state.volumes[volume.id]
  tally.idByName.delete(volume.name)
  use(tally, volume, -volume.capacityBytes)
}

export function resizeVolume(state: FakeState, volume: FakeVolume, capacityBytes: number): void {
  use(tallyOf(state), volume, capacityBytes - volume.capacityBytes)
  volume.capacityBytes = capacityBytes
}

export function volumeNamed(state: FakeState, name: string): FakeVolume | undefined {
  const id = tallyOf(state).idByName.get(name)
  return id === undefined ? undefined : state.volumes[id]
}

export const usedBytesOf = (state: FakeState, pool: string): number => tallyOf(state).usedBytes.get(pool) ?? 0

function use({ usedBytes }: Tally, { pool, copies }: FakeVolume, bytes: number): void {
  usedBytes.set(pool, (usedBytes.get(pool) ?? 0) + bytes * copies)
}

function tallyOf(state: FakeState): Tally {
  const known = tallies.get(state)
  if (known?.made === state.made) return known
  const tally: Tally = { made: state.made, idByName: new Map(), usedBytes: new Map() }
  for (const volume of Object.values(state.volumes)) {
    tally.idByName.set(volume.name, volume.id)
    use(tally, volume, volume.capacityBytes)
  }
  tallies.set(state, tally)
  return tally
}
