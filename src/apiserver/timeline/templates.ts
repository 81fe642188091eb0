// Templates of records: what records of many volumes have in common, such as the user, the component and most changes. A chunk
// contains each of its templates once, as a line of its own, and a record refers to the template by number. Most records of a busy
// server have one of a few templates, which are found by comparing their parts, without building their text.
import { bytesOfText } from '../../base/unpooled-bytes.ts'

export type TemplatePart = string | undefined

/** The parts of a template that is searched for. Parts that differ between most volumes, such as names, belong to the record. */
export class TemplateParts {
  /** Only the first `count` are parts: the array keeps its length, so that it keeps its memory. */
  readonly values: TemplatePart[] = []
  count = 0

  add(part: TemplatePart): void {
    this.values[this.count++] = part
  }
}

export interface Template {
  readonly parts: readonly TemplatePart[]
  /** The template as JSON. */
  readonly json: Uint8Array
  /** The last chunk that contains the template, and the template's number there. */
  chunk: number
  number: number
  /** The template that was found after this one the last time, which is likely to be the next one again. */
  successor: Template | undefined
}

/** Beyond this number, a new template replaces the oldest one. */
const TEMPLATES_MAX = 32

export class Templates {
  readonly #templates: Template[] = []
  #next = 0
  #last: Template | undefined

  /** Returns the template with these parts. `jsonOf` is called for a new one. The parts may be changed afterwards. */
  find(parts: TemplateParts, jsonOf: (parts: readonly TemplatePart[]) => string): Template {
    const expected = this.#last?.successor
    if (expected && areEqual(expected.parts, parts)) {
      this.#last = expected
      return expected
    }
    const template = this.#search(parts) ?? this.#create(parts, jsonOf)
    if (this.#last) this.#last.successor = template
    this.#last = template
    return template
  }

  #search(parts: TemplateParts): Template | undefined {
    for (const template of this.#templates) if (areEqual(template.parts, parts)) return template
    return undefined
  }

  #create({ values, count }: TemplateParts, jsonOf: (parts: readonly TemplatePart[]) => string): Template {
    const parts = values.slice(0, count)
    const template: Template = { parts, json: bytesOfText(jsonOf(parts)), chunk: -1, number: 0, successor: undefined }
    const replaced = this.#templates[this.#next]
    if (replaced) {
      for (const other of this.#templates) if (other.successor === replaced) other.successor = undefined
      replaced.successor = undefined
    }
    this.#templates[this.#next] = template
    this.#next = (this.#next + 1) % TEMPLATES_MAX
    return template
  }
}

/** Compares the last parts first, because those of different templates often start with the same kind and user. */
function areEqual(parts: readonly TemplatePart[], { values, count }: TemplateParts): boolean {
  if (parts.length !== count) return false
  for (let index = count - 1; index >= 0; index--) if (parts[index] !== values[index]) return false
  return true
}
