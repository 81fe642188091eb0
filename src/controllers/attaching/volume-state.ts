// The state that the attach-detach controllers keep per volume between two reconciles. It is not persisted: after a
// restart the force-detach timeout of a deleted node starts again, and an event may be repeated or missing.
import type { VolumeOnNode } from '../../volumes/attachment-names.ts'
import type { Wait } from './plan-volume.ts'

/** Removed when empty: bounded by the number of volumes that are being attached, wait, or have an unresolved problem. */
export interface VolumeState {
  /**
   * By attachment uid: the monotonic time since which the attachment's node has been deleted and no pod has needed the
   * attachment.
   */
  deletedSinceMs: Map<string, number>
  /** Uids of attachments for which a SuccessfulAttachVolume event is still to be recorded. */
  unreportedUids: Set<string>
  /** By node name: the last problem that was recorded as an event. */
  reportedProblems: Map<string, string>
  /** The changes that the volume has been waiting for since its last reconcile. */
  waits: readonly WaitTarget[]
  /** The attachment that is being created and is not in the cache yet. */
  creation: Creation | undefined
}

type WaitTarget = NonNullable<Wait['target']>

export interface Creation extends VolumeOnNode {
  readonly name: string
}

export class VolumeStates {
  readonly #volumes = new Map<string, VolumeState>()
  /** Volume names by wait target. */
  readonly #volumesByTarget = new Map<string, Set<string>>()
  /** Names of attachments that are being created, by node and driver. */
  readonly #creations = new Map<string, Set<string>>()

  stateOf(volumeName: string): VolumeState {
    const existingState = this.#volumes.get(volumeName)
    if (existingState) return existingState
    const newState: VolumeState = {
      deletedSinceMs: new Map(),
      unreportedUids: new Set(),
      reportedProblems: new Map(),
      waits: [],
      creation: undefined,
    }
    this.#volumes.set(volumeName, newState)
    return newState
  }

  has(volumeName: string): boolean {
    return this.#volumes.has(volumeName)
  }

  setWaits(volumeName: string, waits: readonly WaitTarget[]): void {
    const state = this.stateOf(volumeName)
    for (const old of state.waits) removeFromSet(this.#volumesByTarget, waitKeyOf(old), volumeName)
    for (const target of waits) addToSet(this.#volumesByTarget, waitKeyOf(target), volumeName)
    state.waits = waits
  }

  volumesWaitingFor(target: WaitTarget): readonly string[] {
    return [...(this.#volumesByTarget.get(waitKeyOf(target)) ?? [])]
  }

  beginCreation(volumeName: string, creation: Creation): void {
    this.stateOf(volumeName).creation = creation
    addToSet(this.#creations, nodeAndDriverKey(creation), creation.name)
  }

  endCreation(volumeName: string): void {
    const state = this.stateOf(volumeName)
    if (state.creation) removeFromSet(this.#creations, nodeAndDriverKey(state.creation), state.creation.name)
    state.creation = undefined
  }

  /** Names of the driver's attachments that are being created on the node. */
  creationsOn(placement: Pick<Creation, 'nodeName' | 'driver'>): ReadonlySet<string> {
    return this.#creations.get(nodeAndDriverKey(placement)) ?? NO_NAMES
  }

  /** Called after every reconcile. */
  removeIfEmpty(volumeName: string): void {
    const { deletedSinceMs, unreportedUids, reportedProblems, waits, creation } = this.stateOf(volumeName)
    const isEmpty = deletedSinceMs.size + unreportedUids.size + reportedProblems.size + waits.length === 0 && !creation
    if (isEmpty) this.#volumes.delete(volumeName)
  }

  get size(): number {
    return this.#volumes.size
  }
}

const NO_NAMES: ReadonlySet<string> = new Set()
const waitKeyOf = ({ kind, nodeName }: WaitTarget): string => `${kind} ${nodeName}`
const nodeAndDriverKey = ({ nodeName, driver }: Pick<Creation, 'nodeName' | 'driver'>): string =>
  `${nodeName} ${driver}`

function addToSet(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  if (set) set.add(value)
  else sets.set(key, new Set([value]))
}

function removeFromSet(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  set?.delete(value)
  if (set?.size === 0) sets.delete(key)
}
