// Masks secrets in what a driver returns: error messages, volume conditions and logged messages. A driver may quote a secret of
// any earlier call, for example because it retries a login, so the mask stores the secrets of earlier calls. It replaces
// whole secrets, single lines of them, and their encodings: base64 at any offset (as in `Basic` credentials),
// percent-encoding, hexadecimal and JSON escapes.

/** The text that replaces a secret. */
export const MASK = '***'

/** Shorter values, such as "no" or "1", are not masked, because that would garble messages. */
const SECRET_CHARACTERS_MIN = 4
/** Shorter parts of an encoded secret are not masked, because they occur by coincidence. */
const ENCODED_CHARACTERS_MIN = 6
const VALUES_MAX = 256 // beyond this, the least recently sent value is dropped
const CHARACTERS_MAX = 1_048_576 // of all values together; beyond this, the least recently sent values are dropped

export interface SecretMask {
  /** Adds values to replace in later texts. */
  add(values: readonly string[]): void
  /** Replaces the added values in the text. */
  mask(text: string): string
}

export function createSecretMask(): SecretMask {
  /** The values with their forms, least recently sent first. The forms are built when a text is masked. */
  const values = new Map<string, readonly string[] | undefined>()
  let characters = 0

  function addValue(value: string): void {
    if (value.length < SECRET_CHARACTERS_MIN) return
    const forms = values.get(value)
    if (values.delete(value)) characters -= value.length
    values.set(value, forms)
    characters += value.length
    for (const oldest of values.keys()) {
      // The latest value is retained even if it is larger than the bound.
      if ((values.size <= VALUES_MAX && characters <= CHARACTERS_MAX) || oldest === value) break
      values.delete(oldest)
      characters -= oldest.length
    }
  }

  function formsOf(value: string): readonly string[] {
    const forms = values.get(value) ?? buildForms(value)
    values.set(value, forms)
    return forms
  }

  return {
    add: (newValues) => newValues.forEach(addValue),
    mask(text) {
      if (values.size === 0 || text === '') return text
      return replaceRanges(
        text,
        [...values.keys()].flatMap((value) => formsOf(value).flatMap((form) => findRanges(text, form))),
      )
    },
  }
}

interface Range {
  readonly start: number
  readonly end: number
}

function findRanges(text: string, form: string): Range[] {
  const ranges: Range[] = []
  for (let start = text.indexOf(form); start !== -1; start = text.indexOf(form, start + 1))
    ranges.push({ start, end: start + form.length })
  return ranges
}

/** Replaces the ranges with masks. Overlapping ranges get one mask, so that no part of a secret remains. */
function replaceRanges(text: string, ranges: readonly Range[]): string {
  let maskedText = ''
  let position = 0
  let maskEnd = -1
  for (const { start, end } of [...ranges].sort((a, b) => a.start - b.start)) {
    if (start > maskEnd) maskedText += text.slice(position, start) + MASK
    maskEnd = Math.max(maskEnd, end)
    position = maskEnd
  }
  return maskedText + text.slice(position)
}

function buildForms(value: string): readonly string[] {
  const lines = [value, value.trim(), ...value.split(/\r?\n/).map((line) => line.trim())]
  const plainForms = [...new Set(lines)].filter((line) => line.length >= SECRET_CHARACTERS_MIN)
  const encodedForms = plainForms.flatMap(listEncodings).filter((form) => form.length >= ENCODED_CHARACTERS_MIN)
  const escapedForms = plainForms.flatMap((line) => [escapeJson(line), escapeJson(escapeJson(line))])
  return [...new Set([...plainForms, ...escapedForms, ...encodedForms])]
}

/** Escapes a text as in a JSON string. */
const escapeJson = (text: string) => JSON.stringify(text).slice(1, -1)

function listEncodings(text: string): string[] {
  const bytes = Buffer.from(text)
  const hex = bytes.toString('hex')
  return [...listPercentEncodings(text), ...listBase64Forms(bytes), hex, hex.toUpperCase()]
}

/** Returns the encodings of JavaScript, of forms and of Go's path and query escapes, with upper- and lower-case digits. */
function listPercentEncodings(text: string): string[] {
  const component = encodeURIComponent(text.toWellFormed())
  const strict = component.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  const path = component.replace(/%(?:24|26|2B|3A|3D|40)/g, decodeURIComponent) // Go keeps $&+:=@ in a path
  const forms = [component, strict, path].flatMap((form) => [form, form.replaceAll('%20', '+')])
  return forms.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (digits) => digits.toLowerCase())])
}

/**
 * Returns the base64 of the bytes alone, and the part that is the same wherever they stand in a longer value:
 *   hunter2 alone aHVudGVyMg==, in longer values …aHVudGVyM…, …h1bnRlcj… or …odW50ZXIy…
 */
function listBase64Forms(bytes: Buffer): string[] {
  const base64 = bytes.toString('base64')
  const forms = [base64, base64.replace(/=+$/, '')]
  for (const offset of [0, 1, 2]) {
    const shiftedBase64 = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    const firstIndex = Math.ceil((offset * 8) / 6)
    const endIndex = Math.floor(((offset + bytes.length) * 8) / 6)
    forms.push(shiftedBase64.slice(firstIndex, endIndex))
  }
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
}
