// Encodes a change as a line of the journal:
//   change of any kind             ["UID",TEMPLATE,TIME,"NAMESPACE","NAME",{DETAILS}]
//   change of a volume and its claim   ["UID",TEMPLATE,TIME,"NAMESPACE","NAME",{"volume":"VOLUME","pv":[TEMPLATE,"UID","HANDLE"]}]
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

export function encodeChange(encoder: ChunkEncoder, change: DescribedChange, timeText: string): void {
  const number = encoder.numberOf(change.parts, jsonOfChange)
  const { lines } = encoder
  encodeStart(lines, change, number, timeText)
  lines.ascii(encodeDetails(lines, change) ? '}]\n' : '"]\n')
}

/**
 * Encodes the changes of a volume and of the claim that is bound to it in the same transaction, in this order, as one line: they have
 * most of their text in common.
 */
export function encodeBinding(
  encoder: ChunkEncoder,
  volume: DescribedChange,
  claim: DescribedChange,
  timeText: string,
): void {
  const volumeNumber = encoder.numberOf(volume.parts, jsonOfChange)
  const claimNumber = encoder.numberOf(claim.parts, jsonOfChange)
  const { lines } = encoder
  encodeStart(lines, claim, claimNumber, timeText)
  lines.ascii('",{"volume":"')
  lines.ascii(claim.volume!)
  lines.ascii('","pv":[')
  lines.integer(volumeNumber)
  lines.ascii(',"')
  lines.ascii(volume.metadata.uid)
  lines.ascii('",')
  lines.quoted(volume.handle!)
  lines.ascii(']}]\n')
}

/** Returns whether `encodeBinding` can encode these two changes: all that differs between claims is text that they have in common. */
export function isBinding(volume: DescribedChange, claim: DescribedChange): boolean {
  const { uid, namespace, name } = claim.metadata
  return (
    claim.kind === 'PersistentVolumeClaim' &&
    volume.claimUid === uid &&
    volume.handle !== undefined &&
    claim.volume === volume.metadata.name &&
    (volume.valueCount === 0 || (volume.valueCount === 1 && volume.values[0] === `${namespace}/${name}`)) &&
    (claim.valueCount === 0 || (claim.valueCount === 1 && claim.values[0] === claim.volume))
  )
}

/** Names of these kinds are validated, and the server generates uids: neither contains characters that JSON escapes. */
function encodeStart(lines: LineWriter, { metadata }: DescribedChange, number: number, timeText: string): void {
  const { name = '', namespace = '', uid = '' } = metadata
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
