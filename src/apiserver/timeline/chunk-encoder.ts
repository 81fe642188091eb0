// Encodes the records of a chunk as lines:
//   [TIME]                the first line: times below TIME_MIN count from this one
//   [NUMBER,{…}]          a template (templates.ts), before the first record that refers to it
//   [NUMBER,"NAMESPACE"]  a namespace, before the first record that refers to it
//   ["OWNER",NUMBER,…]    a record (encode-activity.ts, encode-change.ts)
// decode-records.ts decodes them, and those of earlier versions.
import { bytesOfText } from '../../base/unpooled-bytes.ts'
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
  /** The number of templates and namespaces in this chunk. */
  #numbers = 0
  /** The time of the chunk, from which those of its records count. */
  #startMs: number | undefined
  #atMs = 0
  /** The namespaces of this chunk, with their numbers. */
  readonly #namespaces = new Map<string, number>()
  #namespace = ''
  #namespaceNumber = 0
  #change = new DescribedChange()
  #otherChange = new DescribedChange()
  /** The change of a volume with a claim that is not encoded yet, because that of the claim may follow. */
  #boundVolume: DescribedChange | undefined

  /** Must be called before the first record of a chunk, and when the time has changed. */
  setTime(nowMs: number): void {
    this.#atMs = Math.floor(nowMs)
    if (this.#startMs !== undefined) return
    this.#startMs = this.#atMs
    this.lines.ascii('[')
    this.lines.integer(this.#startMs)
    this.lines.ascii(']\n')
  }

  addActivity(record: ActivityRecord): void {
    encodeActivity(this, record)
  }

  /**
   * Adds a change of a transaction. Returns the change for the step follower, if it has an effect on the steps of a claim. Call
   * `endTransaction` after the last one.
   */
  addChange(target: WriteTarget, { before, after }: ObjectChange): StepChange | undefined {
    const change = this.#change
    describeChange(change, target, before, after)
    const volume = this.#boundVolume
    if (volume && isBinding(volume, change)) {
      this.#boundVolume = undefined
      encodeBinding(this, volume, change)
    } else {
      if (volume) this.endTransaction()
      if (change.kind === 'PersistentVolume' && change.claimUid) {
        this.#boundVolume = change
        this.#change = this.#otherChange
        this.#otherChange = change
      } else encodeChange(this, change)
    }
    return stepChangeOf(change, this.#atMs)
  }

  endTransaction(): void {
    const volume = this.#boundVolume
    if (!volume) return
    this.#boundVolume = undefined
    encodeChange(this, volume)
  }

  /** Returns the encoded chunk. */
  end(): Uint8Array {
    this.#chunk++
    this.#numbers = 0
    this.#startMs = undefined
    this.#namespace = ''
    if (this.#namespaces.size > 0) this.#namespaces.clear()
    return this.lines.take()
  }

  /** The time of the records that are added, counted from the start of the chunk. */
  get time(): number {
    return this.#atMs - (this.#startMs ?? 0)
  }

  /** Returns a time counted from the start of the chunk. */
  timeOf(ms: number): number {
    return ms - (this.#startMs ?? 0)
  }

  /** Returns the number of a template. Adds its line if this chunk does not contain it yet. */
  numberOf(parts: TemplateParts, jsonOf: (parts: readonly TemplatePart[]) => string): number {
    const template = this.#templates.find(parts, jsonOf)
    if (template.chunk !== this.#chunk) {
      template.chunk = this.#chunk
      template.number = this.#addLine(template.json)
    }
    return template.number
  }

  /** Adds the line of a namespace, if this chunk does not contain it yet. Must be called before a record that refers to it. */
  defineNamespace(namespace: string): void {
    if (namespace === this.#namespace || namespace === '') return
    let number = this.#namespaces.get(namespace)
    if (number === undefined) {
      number = this.#addLine(bytesOfText(JSON.stringify(namespace)))
      this.#namespaces.set(namespace, number)
    }
    this.#namespace = namespace
    this.#namespaceNumber = number
  }

  /** Adds the namespace of the last `defineNamespace` to a record, or an empty text. */
  addNamespace(namespace: string): void {
    if (namespace === '') {
      this.lines.ascii(',""')
      return
    }
    this.lines.ascii(',')
    this.lines.integer(this.#namespaceNumber)
  }

  /** Adds a line with a new number. */
  #addLine(json: Uint8Array): number {
    const number = this.#numbers++
    this.lines.ascii('[')
    this.lines.integer(number)
    this.lines.ascii(',')
    this.lines.bytes(json)
    this.lines.ascii(']\n')
    return number
  }
}
