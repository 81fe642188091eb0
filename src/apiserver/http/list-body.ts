// Encodes lists. The body of a long list is encoded slice by slice, so that it does not block the event loop. JSON and
// YAML are encoded while they are sent, so that the complete body is never in memory; protobuf is encoded before it is
// sent.
import type { JsonValue } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { encodeProtobuf } from '../../api/protobuf/encode.ts'
import { encodeEnvelopeParts } from '../../api/protobuf/envelope.ts'
import { createProtobufWriter } from '../../api/protobuf/writer.ts'
import type { Clock } from '../../base/clock.ts'
import type { Entry } from '../../store/index.ts'
import { viewOf } from '../objects/object-deps.ts'
import { itemBytes, itemBytesLength, type StoredObjects } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'
import type { LongBody } from './messages.ts'
import type { AcceptedForm } from './negotiate.ts'
import { listTypeOf, partialObjectMetadata } from './protobuf-response.ts'
import { type IncludeObject, partialOf, rowPrinter, type TableMeta, tableHead } from './table.ts'

/** Bytes of stored objects that are encoded at a time. An object is not split. */
const SLICE_BYTES = 128 * 1024
/** YAML takes longer to encode. */
const YAML_SLICE_BYTES = 8 * 1024

export interface ListedEntries {
  readonly resource: Resource
  readonly entries: readonly Entry[]
  readonly meta: TableMeta
}

export interface ListBodyDeps {
  readonly clock: Clock
  readonly objects: StoredObjects
}

/** Encodes some entries of the list. */
type EncodeSlice = (entries: readonly Entry[], isFirst: boolean) => Uint8Array

/** Returns the body of a list: complete if it is short, otherwise in slices. */
export async function encodeList(
  deps: ListBodyDeps,
  list: ListedEntries,
  acceptedForm: AcceptedForm,
  include: IncludeObject,
): Promise<Uint8Array | LongBody> {
  const { entries } = list
  const sliceBytes = acceptedForm.media === 'yaml' ? YAML_SLICE_BYTES : SLICE_BYTES
  if (acceptedForm.media === 'protobuf') return encodeProtobufList(deps, list, acceptedForm)
  const encoder = await createEncoder(deps, list, acceptedForm, include)
  const isShort = endOfSlice(entries, 0, sliceBytes) === entries.length
  if (isShort) return Buffer.concat([encoder.head, encoder.encode(entries, true), encoder.tail])
  return longBodyOf(entries, sliceBytes, encoder)
}

interface ListEncoder {
  readonly head: Uint8Array
  readonly encode: EncodeSlice
  readonly tail: Uint8Array
  /** Returns the length of the encoded entries, if it is known before they are encoded. */
  lengthOf?(entries: readonly Entry[]): number
}

async function createEncoder(
  deps: ListBodyDeps,
  { resource, entries, meta }: ListedEntries,
  acceptedForm: AcceptedForm,
  include: IncludeObject,
): Promise<ListEncoder> {
  const { kind, apiVersion } = resource
  const { form, media, metaVersion } = acceptedForm
  const decode = (entry: Entry): KubeObject => viewOf(resource, deps.objects.decode(entry))
  const listHead = { kind: `${kind.kind}List`, apiVersion, metadata: meta }
  if (form === 'table') {
    const options = { metaVersion, include, nowMs: deps.clock.nowMs() }
    let siblings: readonly KubeObject[] | undefined
    const rowOf = rowPrinter(resource, options, () => (siblings ??= entries.map(decode)))
    return jsonEncoder(tableHead(resource, meta, { metaVersion, hasColumns: true }), 'rows', (entry) =>
      rowOf(decode(entry)),
    )
  }
  if (form === 'partial' || form === 'partialList') {
    const head = { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${metaVersion}`, metadata: meta }
    return jsonEncoder(head, 'items', (entry) => partialOf(decode(entry), metaVersion))
  }
  if (media === 'yaml') return yamlEncoder(listHead, decode)
  if (kind.viewOf) return jsonEncoder(listHead, 'items', decode)
  return {
    ...jsonEncoder(listHead, 'items', decode),
    encode: (slice, isFirst) => (isFirst ? itemBytes(slice) : Buffer.concat([COMMA, itemBytes(slice)])),
    lengthOf: itemBytesLength,
  }
}

const COMMA = Buffer.from(',')

/** Encodes a JSON object whose last field is the list. */
const jsonEncoder = (head: object, field: 'items' | 'rows', itemOf: (entry: Entry) => unknown): ListEncoder => ({
  head: Buffer.from(`${JSON.stringify(head).slice(0, -1)},"${field}":[`),
  encode: (entries, isFirst) => {
    const text = entries.map((entry) => JSON.stringify(itemOf(entry))).join(',')
    return Buffer.from(isFirst ? text : `,${text}`)
  },
  tail: Buffer.from(']}'),
})

/** Keys are sorted, so the items are between the apiVersion and the kind. */
async function yamlEncoder(
  { kind, apiVersion, metadata }: { kind: string; apiVersion: string; metadata: TableMeta },
  decode: (entry: Entry) => KubeObject,
): Promise<ListEncoder> {
  const { loadYamlPrinter } = await import('../../api/print-yaml.ts')
  const print = await loadYamlPrinter()
  const tail = print({ kind, metadata: metadata as unknown as JsonValue })
  return {
    head: Buffer.from(`${print({ apiVersion })}items:`),
    encode: (entries, isFirst) => {
      if (entries.length === 0) return Buffer.from(' []\n')
      const items = print(entries.map(decode) as unknown as JsonValue)
      return Buffer.from(isFirst ? `\n${items}` : items)
    },
    tail: Buffer.from(tail),
  }
}

function longBodyOf(
  entries: readonly Entry[],
  sliceBytes: number,
  { head, encode, tail, lengthOf }: ListEncoder,
): LongBody {
  let position = 0
  let isEnded = false
  return {
    storedBytes: storedBytesOf(entries),
    byteLength: lengthOf && head.length + lengthOf(entries) + tail.length,
    next() {
      if (isEnded) return undefined
      const start = position
      position = endOfSlice(entries, start, sliceBytes)
      isEnded = position === entries.length
      const slice = encode(entries.slice(start, position), start === 0)
      if (start > 0 && !isEnded) return slice
      return Buffer.concat(start === 0 ? [head, slice] : [slice, tail])
    },
  }
}

/** Returns the index after the last entry of the slice that starts at `start`. */
function endOfSlice(entries: readonly Entry[], start: number, sliceBytes: number): number {
  let bytes = 0
  let end = start
  while (end < entries.length && bytes < sliceBytes) bytes += entries[end++]!.value.length
  return end
}

/** The envelope starts with the length of the list, so the items are encoded before the first byte is sent. */
async function encodeProtobufList(
  deps: ListBodyDeps,
  { resource, entries, meta }: ListedEntries,
  { form, metaVersion }: AcceptedForm,
): Promise<Uint8Array | LongBody> {
  const isObject = form === 'object'
  const type = isObject ? resource.kind.type : partialObjectMetadata
  const slices: Uint8Array[] = [encodeProtobuf(listTypeOf(type), { metadata: meta, items: [] })]
  for (let start = 0; start < entries.length; ) {
    if (start > 0) await deps.clock.nextTurn()
    const end = endOfSlice(entries, start, SLICE_BYTES)
    const writer = createProtobufWriter()
    for (const entry of entries.slice(start, end)) {
      const object = viewOf(resource, deps.objects.decode(entry))
      writer.writeBytes(ITEMS_FIELD, encodeProtobuf(type, isObject ? object : partialOf(object, metaVersion)))
    }
    slices.push(writer.toBytes())
    start = end
  }
  const rawLength = slices.reduce((sum, { length }) => sum + length, 0)
  const { head, tail } = encodeEnvelopeParts({
    apiVersion: isObject ? resource.apiVersion : `meta.k8s.io/${metaVersion}`,
    kind: isObject ? `${resource.kind.kind}List` : 'PartialObjectMetadataList',
    rawLength,
  })
  slices[0] = Buffer.concat([head, slices[0]!])
  slices.push(tail)
  if (slices.length <= 3) return Buffer.concat(slices)
  let position = 0
  return {
    storedBytes: storedBytesOf(entries),
    byteLength: head.length + rawLength + tail.length,
    next: () => slices[position++],
  }
}

const storedBytesOf = (entries: readonly Entry[]): number => {
  let bytes = 0
  for (const { value } of entries) bytes += value.length
  return bytes
}

/** The field number of `items` in the message of every list. */
const ITEMS_FIELD = 2
