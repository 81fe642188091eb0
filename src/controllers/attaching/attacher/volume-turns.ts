// Which attachment of a volume is being worked on: no two of one volume at once, or both could find it free. Whoever
// comes while another is at work is told when that one is done.

/** Bounded by the workers, and by the attachments of the volumes they work on. */
export class VolumeTurns {
  readonly #waiting = new Map<string, Set<string>>()

  /** False: another has it, and `release` will name this one. */
  take(volume: string, attachmentName: string): boolean {
    const waiting = this.#waiting.get(volume)
    if (!waiting) {
      this.#waiting.set(volume, new Set())
      return true
    }
    waiting.add(attachmentName)
    return false
  }

  /** The attachments that wanted a turn meanwhile. */
  release(volume: string): readonly string[] {
    const waiting = this.#waiting.get(volume) ?? []
    this.#waiting.delete(volume)
    return [...waiting]
  }
}
