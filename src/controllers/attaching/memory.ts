// What this process remembers about a volume between two reconciles. In memory only: after a restart the force-detach
// timeout of a lost node starts again, and an event may be repeated or missing.
import type { VolumeOnNode } from '../../volumes/attachment-names.ts'
import type { Wait } from './plan-volume.ts'

/** Removed when empty, so bounded by the volumes that are attached, being attached, or waiting. */
export interface VolumeMemory {
  /** By uid of the attachment, on the monotonic clock: since when no pod needs it while its node is lost. */
  lostSinceMs: Map<string, number>
  /** Uids of attachments whose success is not reported yet. */
  pending: Set<string>
  /** By node: the last reported problem. */
  reported: Map<string, string>
  /** What the last reconcile waits for. */
  waits: readonly Waited[]
  /** An attachment being created that the cache does not have yet. */
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
    const empty: VolumeMemory = {
      lostSinceMs: new Map(),
      pending: new Set(),
      reported: new Map(),
      waits: [],
      creation: undefined,
    }
    this.#volumes.set(volumeName, empty)
    return empty
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
    addTo(this.#creations, slotOf(creation), creation.name)
  }

  endCreation(volumeName: string): void {
    const memory = this.of(volumeName)
    if (memory.creation) removeFrom(this.#creations, slotOf(memory.creation), memory.creation.name)
    memory.creation = undefined
  }

  creationsOn(slot: Pick<Creation, 'nodeName' | 'driver'>): ReadonlySet<string> {
    return this.#creations.get(slotOf(slot)) ?? NOTHING
  }

  /** Called after every reconcile. */
  tidy(volumeName: string): void {
    const { lostSinceMs, pending, reported, waits, creation } = this.of(volumeName)
    const isEmpty = lostSinceMs.size + pending.size + reported.size + waits.length === 0 && !creation
    if (isEmpty) this.#volumes.delete(volumeName)
  }

  get size(): number {
    return this.#volumes.size
  }
}

const NOTHING: ReadonlySet<string> = new Set()
const topicOf = ({ what, nodeName }: Waited): string => `${what} ${nodeName}`
const slotOf = ({ nodeName, driver }: Pick<Creation, 'nodeName' | 'driver'>): string => `${nodeName} ${driver}`

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
