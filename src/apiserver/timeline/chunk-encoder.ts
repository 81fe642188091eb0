// Encodes the records of a chunk as lines. The line of a template precedes the first record that refers to it.
import type { WriteTarget } from '../objects/write-verb.ts'
import type { ObjectChange } from './describe-change.ts'
import { describeChange } from './describe-change.ts'
import { encodeActivity } from './encode-activity.ts'
import { encodeChange } from './encode-change.ts'
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

  addActivity(record: ActivityRecord): void {
    encodeActivity(this, record)
  }

  /** Returns the change for the step follower, if it has an effect on the steps of a claim. */
  addChange(target: WriteTarget, { before, after }: ObjectChange, atMs: number): StepChange | undefined {
    const change = describeChange(target, before, after)
    if (atMs !== this.#atMs) {
      this.#atMs = atMs
      this.#timeText = String(atMs)
    }
    encodeChange(this, change, this.#timeText)
    return stepChangeOf(change, atMs)
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
