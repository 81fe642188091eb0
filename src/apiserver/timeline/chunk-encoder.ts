// Encodes the records of a chunk as lines. The line of a template precedes the first record that refers to it.
import type { WriteTarget } from '../objects/write-verb.ts'
import { DescribedChange, describeChange, type ObjectChange } from './describe-change.ts'
import { encodeActivity } from './encode-activity.ts'
import { encodeBinding, encodeChange, isBinding } from './encode-change.ts'
import { type StepChange, stepChangeOf } from './follow-steps.ts'
import type { ActivityRecord } from './journal-record.ts'
import { LineWriter } from './line-writer.ts'
import { type TemplatePart, type TemplateParts, Templates } from './templates.ts'

/** Encodes one chunk after the other, with templates and memory that are used again. */
export class ChunkEncoder {
  readonly lines = new LineWriter()
  readonly #templates = new Templates()
  #chunk = 0
  #templateCount = 0
  #atMs = 0
  #timeText = '0'
  #change = new DescribedChange()
  #otherChange = new DescribedChange()
  /** The change of a volume with a claim that is not encoded yet, because that of the claim may follow. */
  #boundVolume: DescribedChange | undefined

  addActivity(record: ActivityRecord): void {
    encodeActivity(this, record)
  }

  /**
   * Adds a change of a transaction. Returns the change for the step follower, if it has an effect on the steps of a claim. Call
   * `endTransaction` after the last one.
   */
  addChange(target: WriteTarget, { before, after }: ObjectChange, atMs: number): StepChange | undefined {
    if (atMs !== this.#atMs) {
      this.endTransaction()
      this.#atMs = atMs
      this.#timeText = String(atMs)
    }
    const change = this.#change
    describeChange(change, target, before, after)
    const volume = this.#boundVolume
    if (volume && isBinding(volume, change)) {
      this.#boundVolume = undefined
      encodeBinding(this, volume, change, this.#timeText)
    } else {
      this.endTransaction()
      if (change.kind === 'PersistentVolume' && change.claimUid) {
        this.#boundVolume = change
        this.#change = this.#otherChange
        this.#otherChange = change
      } else encodeChange(this, change, this.#timeText)
    }
    return stepChangeOf(change, atMs)
  }

  endTransaction(): void {
    const volume = this.#boundVolume
    if (!volume) return
    this.#boundVolume = undefined
    encodeChange(this, volume, this.#timeText)
  }

  /** Returns the encoded chunk. */
  end(): Uint8Array {
    this.#chunk++
    this.#templateCount = 0
    return this.lines.take()
  }

  /** Returns the number of a template. Adds its line if this chunk does not contain it yet. */
  numberOf(parts: TemplateParts, jsonOf: (parts: readonly TemplatePart[]) => string): number {
    const template = this.#templates.find(parts, jsonOf)
    if (template.chunk !== this.#chunk) {
      template.chunk = this.#chunk
      template.number = this.#templateCount++
      this.lines.ascii('[')
      this.lines.integer(template.number)
      this.lines.ascii(',')
      this.lines.bytes(template.json)
      this.lines.ascii(']\n')
    }
    return template.number
  }
}
