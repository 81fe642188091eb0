// Encodes a change as a line of the journal:
//   ["UID",TEMPLATE,TIME,"NAMESPACE","NAME",{DETAILS}]
// decode-records.ts decodes it.
import type { ChunkEncoder } from './chunk-encoder.ts'
import { ADDED, ALONE, CHANGED, CHANGES_START, type DescribedChange, OWN_VALUE, REMOVED } from './describe-change.ts'
import { escapeText, quoteText } from './journal-record.ts'
import type { LineWriter } from './line-writer.ts'
import type { TemplatePart } from './templates.ts'

/** Longer texts are cut, such as the message of a driver in an attachment. */
const TEXT_LENGTH_MAX = 300
/** Further changes of one write are omitted. */
const CHANGES_MAX = 20
/** Escaped, because text that contains only ASCII is encoded several times faster. */
const ARROW = '\\u2192'

/** Names of these kinds are validated, and the server generates uids: neither contains characters that JSON escapes. */
export function encodeChange(encoder: ChunkEncoder, change: DescribedChange, timeText: string): void {
  const { name = '', namespace = '', uid = '' } = change.object.metadata
  const number = encoder.numberOf(change.parts, jsonOfChange)
  const { lines } = encoder
  lines.ascii('["')
  lines.ascii(uid)
  lines.ascii('",')
  lines.integer(number)
  lines.ascii(',')
  lines.ascii(timeText)
  lines.ascii(',"')
  lines.ascii(namespace)
  lines.ascii('","')
  lines.ascii(name)
  lines.ascii(encodeDetails(lines, change) ? '}]\n' : '"]\n')
}

/** Adds the end of the name and the details, if there are any. Returns whether there are. */
function encodeDetails(
  lines: LineWriter,
  { volume, claimUid, handle, claims, values, valueCount }: DescribedChange,
): boolean {
  let before = '",{'
  if (volume) {
    lines.ascii(before)
    lines.ascii('"volume":')
    lines.quoted(volume)
    before = ','
  }
  if (claimUid) {
    lines.ascii(before)
    lines.ascii('"claimUid":')
    lines.quoted(claimUid)
    before = ','
  }
  if (handle) {
    lines.ascii(before)
    lines.ascii('"handle":')
    lines.quoted(handle)
    before = ','
  }
  if (claims) {
    lines.ascii(before)
    lines.ascii('"claims":')
    encodeTexts(lines, claims, claims.length)
    before = ','
  }
  if (valueCount > 0) {
    lines.ascii(before)
    lines.ascii('"values":')
    encodeTexts(lines, values, valueCount)
    before = ','
  }
  return before === ','
}

function encodeTexts(lines: LineWriter, texts: readonly string[], count: number): void {
  lines.ascii('[')
  for (let index = 0; index < count; index++) {
    if (index > 0) lines.ascii(',')
    lines.quoted(texts[index]!)
  }
  lines.ascii(']')
}

function jsonOfChange(parts: readonly TemplatePart[]): string {
  const [kind, verb, user, manager, step] = parts
  const changes: string[] = []
  for (let index = CHANGES_START; index < parts.length && changes.length < CHANGES_MAX; index += 3)
    changes.push(changeText(parts[index]!, parts[index + 1], parts[index + 2]))
  return (
    `{"kind":"${kind}","verb":"${verb}","user":${quoteText(user ?? '')}${manager ? `,"manager":${quoteText(manager)}` : ''}` +
    `,"changes":[${changes.join()}]${step ? `,"step":"${step}"` : ''}}`
  )
}

/** Returns the text as a JSON string, or as an array with the name of a field whose value belongs to the record. */
function changeText(noun: string, before: string | undefined, after: string | undefined): string {
  if (before === OWN_VALUE) return `["${noun}"]`
  if (before === ALONE) return `"${noun}"`
  if (before === ADDED || before === CHANGED || before === REMOVED)
    return `"${noun} ${escapeText(after ?? '')} ${before.slice(1)}"`
  if (after === undefined) return `"${noun} removed"`
  if (before === undefined) return `"${noun} ${cut(after)}"`
  return `"${noun} ${cut(before)} ${ARROW} ${cut(after)}"`
}

const cut = (text: string): string =>
  escapeText(text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text)
