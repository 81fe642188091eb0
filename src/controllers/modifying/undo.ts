// What makes going back real. While a change is under way, the claim says which attributes the driver may have changed
// and what they were before; once it is done, the volume says which attributes the driver has confirmed.
// Both are annotations and are written together with the step they belong to.
//   claim    modifying.stowage.dev/undo         {"iops":"500","tier":null}          null: nobody knows what it was
//   volume   modifying.stowage.dev/attributes   {"class":"gold","attributes":{"iops":"1000"}}

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isQuantity, quantityToBytes } from '../../api/quantity.ts'
import { normalizeThroughput } from '../../api/throughput.ts'
import { RESERVED_PREFIX } from '../provisioning/csi/parameters.ts'
import type { Attributes } from './target.ts'

export const UNDO = 'modifying.stowage.dev/undo'
export const ATTRIBUTES = 'modifying.stowage.dev/attributes'

export type Undo = Readonly<Record<string, string | null>>

/** Beyond this a volume remembers only what was sent last; what a class before that one left is then not put back. */
const REMEMBERED_BYTES_MAX = 16_384

/** Undefined when there is none, or none that can be read. */
export function undoOf({ metadata }: Readonly<PersistentVolumeClaim>): Undo | undefined {
  const value = parsed(metadata.annotations?.[UNDO])
  return isRecord(value) && Object.values(value).every((one) => one === null || typeof one === 'string')
    ? (value as Undo)
    : undefined
}

/** What the driver has confirmed, if that was for the class the volume is said to have. */
export function confirmedOf({ metadata, spec }: Readonly<PersistentVolume>): Attributes | undefined {
  const value = parsed(metadata.annotations?.[ATTRIBUTES])
  if (!isRecord(value) || (value.class ?? undefined) !== spec?.volumeAttributesClassName) return undefined
  const { attributes } = value
  return isRecord(attributes) && Object.values(attributes).every((one) => typeof one === 'string')
    ? (attributes as Attributes)
    : undefined
}

export function confirmedText(className: string | undefined, before: Attributes, sent: Attributes): string {
  const text = (attributes: Attributes) =>
    JSON.stringify({ ...(className === undefined ? {} : { class: className }), attributes: sorted(attributes) })
  const all = text({ ...before, ...sent })
  return all.length <= REMEMBERED_BYTES_MAX ? all : text(sent)
}

export const undoText = (undo: Undo): string | null =>
  Object.keys(undo).length === 0 ? null : JSON.stringify(sorted(undo))

/** What was recorded first stays: later tries start from what earlier ones may have left. */
export function undoFor(sending: Attributes, recorded: Undo, known: Attributes): Undo {
  const undo: Record<string, string | null> = { ...recorded }
  for (const [key, value] of Object.entries(sending)) {
    if (Object.hasOwn(undo, key)) continue
    const before = Object.hasOwn(known, key) ? known[key]! : null
    if (before !== value) undo[key] = before
  }
  return undo
}

/** Those of an undo that can be put back. */
export const putBack = (undo: Undo): Attributes =>
  Object.fromEntries(Object.entries(undo).filter((entry): entry is [string, string] => entry[1] !== null))

/** How a storage class sets an attribute at creation only. */
const ON_CREATE: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}

/** What a volume was made with, as far as the parameters of its storage class say so. */
export function madeWith(parameters: Attributes = {}): Attributes {
  const made: Record<string, string> = {}
  for (const [key, value] of Object.entries(parameters)) {
    if (key.startsWith(RESERVED_PREFIX)) continue
    const attribute = Object.hasOwn(ON_CREATE, key) ? ON_CREATE[key]! : undefined
    if (attribute === undefined) made[key] = value
    else made[attribute] = attribute === 'throughput' ? wholeMebibytes(value) : value
  }
  return made
}

const BYTES_PER_MIB = 1_048_576n

function wholeMebibytes(text: string): string {
  const quantity = text.replace(/B?\/s$/, '')
  if (!isQuantity(quantity)) return text
  return String((quantityToBytes(normalizeThroughput(quantity)) + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // someone wrote on it by hand: as if it were not there
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The same attributes give the same text, so that nothing is written twice. */
const sorted = <V>(record: Readonly<Record<string, V>>): Record<string, V> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
