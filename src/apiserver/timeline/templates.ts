// Templates of records: what records of many volumes have in common, such as the user, the component and most changes. A chunk
// contains each of its templates once, as a line of its own, and a record refers to the template by number. Most records of a busy
// server have one of a few templates, which are found by comparing their parts, without building their text.

/** The parts of a template. Parts that differ between most volumes, such as names, belong to the record. */
export type TemplateParts = readonly (string | undefined)[]

export interface Template {
  readonly parts: TemplateParts
  /** The template as JSON. */
  readonly json: string
  /** The key of the last chunk that contains the template, and the template's number there. */
  chunk: string
  number: number
}

/** Beyond this number, a new template replaces the oldest one. */
const TEMPLATES_MAX = 32

export class Templates {
  readonly #templates: Template[] = []
  #next = 0

  /** Returns the template with these parts. `jsonOf` is called for a new one. The parts may be changed afterwards. */
  find(parts: TemplateParts, jsonOf: (parts: TemplateParts) => string): Template {
    for (const template of this.#templates) if (areEqual(template.parts, parts)) return template
    const template: Template = { parts: [...parts], json: jsonOf(parts), chunk: '', number: 0 }
    this.#templates[this.#next] = template
    this.#next = (this.#next + 1) % TEMPLATES_MAX
    return template
  }
}

function areEqual(a: TemplateParts, b: TemplateParts): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false
  return true
}
