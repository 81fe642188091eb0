// What this process remembers of volumes between two looks at them. All of it may be lost at any moment: then a lost
// node is waited for once more, and an event is told a second time or not at all.
import type { VolumeOnNode } from '../../volumes/attachment-names.ts'
import type { Wait } from './plan-volume.ts'

/** Dropped when it says nothing, so it is bounded by the volumes that are attached, on their way, or waited for. */
export interface VolumeMemory {
  /** By uid of the attachment, by the monotonic clock: since when nobody needs it while its node is lost. */
  lostSinceMs: Map<string, number>
  /** Attachments, by uid, whose success has yet to be told. */
  expected: Set<string>
  /** By node: what its pods were told last. */
  told: Map<string, string>
  /** What ends the waits of the last look. */
  waits: readonly Waited[]
  /** An attachment that was asked for, and that the cache does not show yet. */
  creation: Creation | undefined
}

type Waited = NonNullable<Wait['for']>

export interface Creation extends VolumeOnNode {
  readonly name: string
}

export class Memory {
  readonly #volumes = new Map<string, VolumeMemory>()
  /** Volumes by what they wait for. */
  readonly #waiting = new Map<string, Set<string>>()
  /** Creations by node and driver. */
  readonly #creations = new Map<string, Set<string>>()

  of(volumeName: string): VolumeMemory {
    const known = this.#volumes.get(volumeName)
    if (known) return known
    const fresh: VolumeMemory = {
      lostSinceMs: new Map(),
      expected: new Set(),
      told: new Map(),
      waits: [],
      creation: undefined,
    }
    this.#volumes.set(volumeName, fresh)
    return fresh
  }

  waitFor(volumeName: string, waits: readonly Waited[]): void {
    const memory = this.of(volumeName)
    for (const old of memory.waits) removeFrom(this.#waiting, topicOf(old), volumeName)
    for (const one of waits) addTo(this.#waiting, topicOf(one), volumeName)
    memory.waits = waits
  }

  waitingFor(waited: Waited): readonly string[] {
    return [...(this.#waiting.get(topicOf(waited)) ?? [])]
  }

  beginCreation(volumeName: string, creation: Creation): void {
    this.of(volumeName).creation = creation
    addTo(this.#creations, placeOf(creation), creation.name)
  }

  endCreation(volumeName: string): void {
    const memory = this.of(volumeName)
    if (memory.creation) removeFrom(this.#creations, placeOf(memory.creation), memory.creation.name)
    memory.creation = undefined
  }

  creationsOn(place: Pick<Creation, 'nodeName' | 'driver'>): ReadonlySet<string> {
    return this.#creations.get(placeOf(place)) ?? NOTHING
  }

  /** After every look. */
  tidy(volumeName: string): void {
    const { lostSinceMs, expected, told, waits, creation } = this.of(volumeName)
    const isEmpty = lostSinceMs.size + expected.size + told.size + waits.length === 0 && !creation
    if (isEmpty) this.#volumes.delete(volumeName)
  }

  get size(): number {
    return this.#volumes.size
  }
}

const NOTHING: ReadonlySet<string> = new Set()
const topicOf = ({ what, nodeName }: Waited): string => `${what} ${nodeName}`
const placeOf = ({ nodeName, driver }: Pick<Creation, 'nodeName' | 'driver'>): string => `${nodeName} ${driver}`

function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  if (set) set.add(value)
  else sets.set(key, new Set([value]))
}

function removeFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  set?.delete(value)
  if (set?.size === 0) sets.delete(key)
}
