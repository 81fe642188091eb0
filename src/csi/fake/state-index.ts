// What would otherwise take a look at every volume: which one has a name, and how much of a pool is used. Kept beside
// the state, which stays plain data. Whoever puts a volume there by hand counts it in `made`, and all is counted again.
import type { FakeState, FakeVolume } from './state.ts'

interface StateIndex {
  /** As many were made when this was counted. */
  sequence: number
  readonly idByName: Map<string, string>
  readonly usedBytes: Map<string, number>
}

const indexes = new WeakMap<FakeState, StateIndex>()

export function addVolume(state: FakeState, volume: FakeVolume): void {
  const tally = indexOf(state)
  state.volumes[volume.id] = volume
  state.sequence = volume.order
  tally.sequence = state.sequence
  tally.idByName.set(volume.name, volume.id)
  use(tally, volume, volume.capacityBytes)
}

export function removeVolume(state: FakeState, volume: FakeVolume): void {
  const tally = indexOf(state)
  delete state.volumes[volume.id]
  tally.idByName.delete(volume.name)
  use(tally, volume, -volume.capacityBytes)
}

export function resizeVolume(state: FakeState, volume: FakeVolume, capacityBytes: number): void {
  use(indexOf(state), volume, capacityBytes - volume.capacityBytes)
  volume.capacityBytes = capacityBytes
}

export function volumeByName(state: FakeState, name: string): FakeVolume | undefined {
  const id = indexOf(state).idByName.get(name)
  return id === undefined ? undefined : state.volumes[id]
}

export const usedBytesOf = (state: FakeState, pool: string): number => indexOf(state).usedBytes.get(pool) ?? 0

function use({ usedBytes }: StateIndex, { pool, copies }: FakeVolume, bytes: number): void {
  usedBytes.set(pool, (usedBytes.get(pool) ?? 0) + bytes * copies)
}

function indexOf(state: FakeState): StateIndex {
  const known = indexes.get(state)
  if (known?.sequence === state.sequence) return known
  const tally: StateIndex = { sequence: state.sequence, idByName: new Map(), usedBytes: new Map() }
  for (const volume of Object.values(state.volumes)) {
    tally.idByName.set(volume.name, volume.id)
    use(tally, volume, volume.capacityBytes)
  }
  indexes.set(state, tally)
  return tally
}
