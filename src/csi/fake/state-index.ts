// Indexes of the fake driver's state: volumes by name, and used bytes by pool. They are stored outside the state, which is
// plain data. A test that adds a volume to the state directly must increment `sequence`, so that the indexes are rebuilt.
import type { FakeState, FakeVolume } from './state.ts'

interface StateIndex {
  /** The value of FakeState.sequence when the indexes were updated. */
  sequence: number
  readonly idByName: Map<string, string>
  readonly usedBytes: Map<string, number>
}

const indexes = new WeakMap<FakeState, StateIndex>()

export function addVolume(state: FakeState, volume: FakeVolume): void {
  const index = indexOf(state)
  state.volumes[volume.id] = volume
  state.sequence = volume.order
  index.sequence = state.sequence
  index.idByName.set(volume.name, volume.id)
  addUsage(index, volume, volume.capacityBytes)
}

export function removeVolume(state: FakeState, volume: FakeVolume): void {
  const index = indexOf(state)
  delete state.volumes[volume.id]
  index.idByName.delete(volume.name)
  addUsage(index, volume, -volume.capacityBytes)
}

export function resizeVolume(state: FakeState, volume: FakeVolume, capacityBytes: number): void {
  addUsage(indexOf(state), volume, capacityBytes - volume.capacityBytes)
  volume.capacityBytes = capacityBytes
}

export function findVolumeByName(state: FakeState, name: string): FakeVolume | undefined {
  const id = indexOf(state).idByName.get(name)
  return id === undefined ? undefined : state.volumes[id]
}

export const usedBytesOf = (state: FakeState, pool: string): number => indexOf(state).usedBytes.get(pool) ?? 0

function addUsage({ usedBytes }: StateIndex, { pool, copies }: FakeVolume, bytes: number): void {
  usedBytes.set(pool, (usedBytes.get(pool) ?? 0) + bytes * copies)
}

function indexOf(state: FakeState): StateIndex {
  const existingIndex = indexes.get(state)
  if (existingIndex?.sequence === state.sequence) return existingIndex
  const index: StateIndex = { sequence: state.sequence, idByName: new Map(), usedBytes: new Map() }
  for (const volume of Object.values(state.volumes)) {
    index.idByName.set(volume.name, volume.id)
    addUsage(index, volume, volume.capacityBytes)
  }
  indexes.set(state, index)
  return index
}
