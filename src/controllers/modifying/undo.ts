// The undo record, which makes rollback possible. During a modification an annotation on the claim lists the attributes
// that the driver may have changed, with their previous values; afterwards an annotation on the volume lists the
// attributes that the driver has confirmed. Each is written together with the step it belongs to.
//   claim    modifying.stowage.dev/undo         {"iops":"500","tier":null}          null: previous value not known
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

/** Beyond this only the attributes sent last are recorded; those of an earlier class are then not restored. */
const ATTRIBUTES_BYTES_MAX = 16_384

/** Undefined if the annotation is absent or invalid. */
export function undoOf({ metadata }: Readonly<PersistentVolumeClaim>): Undo | undefined {
  const value = parse(metadata.annotations?.[UNDO])
  return isRecord(value) && Object.values(value).every((one) => one === null || typeof one === 'string')
    ? (value as Undo)
    : undefined
}

/** The confirmed attributes, if they belong to the volume's current class. */
export function confirmedOf({ metadata, spec }: Readonly<PersistentVolume>): Attributes | undefined {
  const value = parse(metadata.annotations?.[ATTRIBUTES])
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
  return all.length <= ATTRIBUTES_BYTES_MAX ? all : text(sent)
}

export const undoText = (undo: Undo): string | null =>
  Object.keys(undo).length === 0 ? null : JSON.stringify(sorted(undo))

/** Adds the attributes of a call to the undo record. Earlier entries stay: they hold the oldest values. */
export function undoFor(sending: Attributes, recorded: Undo, known: Attributes): Undo {
  const undo: Record<string, string | null> = { ...recorded }
  for (const [key, value] of Object.entries(sending)) {
    if (Object.hasOwn(undo, key)) continue
    const before = Object.hasOwn(known, key) ? known[key]! : null
    if (before !== value) undo[key] = before
  }
  return undo
}

/** The entries that can be restored: those with a known previous value. */
export const knownValues = (undo: Undo): Attributes =>
  Object.fromEntries(Object.entries(undo).filter((entry): entry is [string, string] => entry[1] !== null))

/** Storage class parameters that set an attribute at creation only. */
const ON_CREATE: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}

/** The attributes at creation, by the parameters of the volume's storage class. */
export function provisionedWith(parameters: Attributes = {}): Attributes {
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

function parse(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // edited by a user: ignored
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Equal attributes give equal texts, so that no unchanged annotation is written. */
const sorted = <V>(record: Readonly<Record<string, V>>): Record<string, V> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
