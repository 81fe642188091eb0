// The undo record, from which a modification is rolled back. During a modification an annotation of the claim lists the
// attributes that the driver may have changed, with their previous values. Afterwards an annotation of the volume lists
// the attributes that the driver has confirmed.
//   claim    modifying.stowage.dev/undo         {"iops":"500","tier":null}          null: previous value unknown
//   volume   modifying.stowage.dev/attributes   {"class":"gold","attributes":{"iops":"1000"}}

import { isRecord } from '../../api/decode.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isQuantity, quantityToBytes } from '../../api/quantity.ts'
import { normalizeThroughput } from '../../api/throughput.ts'
import { RESERVED_PREFIX } from '../provisioning/csi/parameters.ts'
import type { Attributes } from './target.ts'

export const UNDO_ANNOTATION = 'modifying.stowage.dev/undo'
export const ATTRIBUTES_ANNOTATION = 'modifying.stowage.dev/attributes'

export type Undo = Readonly<Record<string, string | null>>

/** If the volume's annotation would be longer, it has only the last call's attributes; earlier ones are not restored. */
const ATTRIBUTES_BYTES_MAX = 16_384

/** Returns undefined if the annotation is absent or invalid. */
export function undoOf({ metadata }: Readonly<PersistentVolumeClaim>): Undo | undefined {
  const value = parseJson(metadata.annotations?.[UNDO_ANNOTATION])
  return isRecord(value) && Object.values(value).every((previous) => previous === null || typeof previous === 'string')
    ? (value as Undo)
    : undefined
}

/** Returns the confirmed attributes, or undefined if they do not belong to the volume's current class. */
export function confirmedAttributesOf({ metadata, spec }: Readonly<PersistentVolume>): Attributes | undefined {
  const value = parseJson(metadata.annotations?.[ATTRIBUTES_ANNOTATION])
  if (!isRecord(value) || (value.class ?? undefined) !== spec?.volumeAttributesClassName) return undefined
  const { attributes } = value
  return isRecord(attributes) && Object.values(attributes).every((attribute) => typeof attribute === 'string')
    ? (attributes as Attributes)
    : undefined
}

/** Serializes the previous attributes with those that the driver has just confirmed. */
export function serializeConfirmedAttributes(
  className: string | undefined,
  previousAttributes: Attributes,
  newAttributes: Attributes,
): string {
  const serialize = (attributes: Attributes) =>
    JSON.stringify({ ...(className === undefined ? {} : { class: className }), attributes: sortKeys(attributes) })
  const annotation = serialize({ ...previousAttributes, ...newAttributes })
  return Buffer.byteLength(annotation) <= ATTRIBUTES_BYTES_MAX ? annotation : serialize(newAttributes)
}

export const serializeUndo = (undo: Undo): string | null =>
  Object.keys(undo).length === 0 ? null : JSON.stringify(sortKeys(undo))

/** Adds a call's attributes to the undo record. Existing entries do not change, because they have the oldest values. */
export function extendUndo(newAttributes: Attributes, existingUndo: Undo, currentValues: Attributes): Undo {
  const undo: Record<string, string | null> = { ...existingUndo }
  for (const [key, value] of Object.entries(newAttributes)) {
    if (Object.hasOwn(undo, key)) continue
    const previousValue = Object.hasOwn(currentValues, key) ? currentValues[key]! : null
    if (previousValue !== value) undo[key] = previousValue
  }
  return undo
}

/** Returns the entries that can be restored, which have a known previous value. */
export const knownValues = (undo: Undo): Attributes =>
  Object.fromEntries(Object.entries(undo).filter((entry): entry is [string, string] => entry[1] !== null))

/** Storage class parameters that set an attribute at creation only. */
const ON_CREATE_ATTRIBUTES: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}

/** Returns the attributes at creation, from the parameters of the volume's storage class. */
export function attributesAtCreation(parameters: Attributes = {}): Attributes {
  const attributes: Record<string, string> = {}
  for (const [key, value] of Object.entries(parameters)) {
    if (key.startsWith(RESERVED_PREFIX)) continue
    const attribute = Object.hasOwn(ON_CREATE_ATTRIBUTES, key) ? ON_CREATE_ATTRIBUTES[key]! : undefined
    if (attribute === undefined) attributes[key] = value
    else attributes[attribute] = attribute === 'throughput' ? toMebibytes(value) : value
  }
  return attributes
}

const BYTES_PER_MIB = 1_048_576n

function toMebibytes(text: string): string {
  const quantity = text.replace(/B?\/s$/, '')
  if (!isQuantity(quantity)) return text
  return String((quantityToBytes(normalizeThroughput(quantity)) + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)
}

function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // a user edited the annotation
  }
}

/** Sorts the keys, so that equal attributes have equal annotations. */
const sortKeys = <V>(record: Readonly<Record<string, V>>): Record<string, V> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
