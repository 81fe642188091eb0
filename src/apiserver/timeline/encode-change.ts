// Encodes a change as a line of the journal:
//   change of any kind                 ["UID",TEMPLATE,TIME,NAMESPACE,"NAME",{DETAILS}]
//   change of a volume and its claim   ["UID",TEMPLATE,TIME,NAMESPACE,"NAME",[TEMPLATE,"VOLUME UID","HANDLE","VOLUME NAME"]]
// A volume name that consists of `pvc-` and the uid of the claim is omitted. chunk-encoder.ts describes TEMPLATE, TIME and NAMESPACE, and
// decode-records.ts decodes the lines.
import type { ChunkEncoder } from './chunk-encoder.ts'
import {
  ADDED,
  ALONE,
  CHANGED,
  CHANGES_START,
  type DescribedChange,
  nameOfClaim,
  OWN_VALUE,
  REMOVED,
} from './describe-change.ts'
import { escapeText, quoteText } from './journal-record.ts'
import type { LineWriter } from './line-writer.ts'
import { isNamedAfter } from './provisioned-name.ts'
import type { TemplatePart } from './templates.ts'

/** Longer texts are cut, such as the message of a driver in an attachment. */
const TEXT_LENGTH_MAX = 300
/** Further changes of one write are omitted. */
const CHANGES_MAX = 20
/** Escaped, because text that contains only ASCII is encoded several times faster. */
const ARROW = '\\u2192'

export function encodeChange(encoder: ChunkEncoder, change: DescribedChange): void {
  encodeStart(encoder, change, encoder.numberOf(change.parts, jsonOfChange))
  encoder.lines.ascii(encodeDetails(encoder.lines, change) ? '}]\n' : ']\n')
}

/**
 * Encodes the changes of a volume and of the claim that is bound to it in the same transaction, in this order, as one line: they have
 * most of their text in common.
 */
export function encodeBinding(encoder: ChunkEncoder, volume: DescribedChange, claim: DescribedChange): void {
  const volumeNumber = encoder.numberOf(volume.parts, jsonOfChange)
  encodeStart(encoder, claim, encoder.numberOf(claim.parts, jsonOfChange))
  const { lines } = encoder
  const { name, uid } = volume.metadata
  lines.ascii(',[')
  lines.integer(volumeNumber)
  lines.ascii(',')
  lines.quoted(uid)
  lines.ascii(',')
  lines.quoted(volume.handle!)
  if (!isNamedAfter(name, claim.metadata.uid)) {
    lines.ascii(',')
    lines.quoted(name)
  }
  lines.ascii(']]\n')
}

/** Returns whether `encodeBinding` can encode these two changes: all that differs between claims is text that they have in common. */
export function isBinding(volume: DescribedChange, claim: DescribedChange): boolean {
  const { uid, namespace, name } = claim.metadata
  return (
    claim.kind === 'PersistentVolumeClaim' &&
    volume.claimUid === uid &&
    volume.handle !== undefined &&
    claim.volume === volume.metadata.name &&
    (volume.ownClaim === undefined || (volume.ownClaim.namespace === namespace && volume.ownClaim.name === name)) &&
    (claim.ownVolume === undefined || claim.ownVolume === claim.volume)
  )
}

function encodeStart(encoder: ChunkEncoder, { metadata }: DescribedChange, number: number): void {
  const { name = '', namespace = '', uid = '' } = metadata
  const { lines } = encoder
  encoder.defineNamespace(namespace)
  lines.start(uid, number, encoder.time)
  encoder.addNamespace(namespace)
  lines.ascii(',')
  lines.quoted(name)
}

/** Adds the details, if there are any. Returns whether there are. */
function encodeDetails(lines: LineWriter, change: DescribedChange): boolean {
  const { volume, claimUid, handle, claims, ownClaim, ownVolume } = change
  let before = ',{'
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
    encodeTexts(lines, claims)
    before = ','
  }
  if (ownVolume ?? ownClaim) {
    lines.ascii(before)
    lines.ascii('"values":')
    encodeTexts(lines, [ownVolume ?? nameOfClaim(ownClaim)])
    before = ','
  }
  return before === ','
}

function encodeTexts(lines: LineWriter, texts: readonly string[]): void {
  lines.ascii('[')
  for (let index = 0; index < texts.length; index++) {
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
