// Indexes of the fake driver's state: volume by name, and used bytes by pool. They are kept beside the state, which stays
// plain data. A test that adds a volume to the state directly increments `sequence`, and the indexes are rebuilt.
import type { FakeState, FakeVolume } from './state.ts'

interface StateIndex {
  /** The value of FakeState.sequence that these indexes reflect. */
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
