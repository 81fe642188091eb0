// Encodes and decodes the envelope of a protobuf body: four magic bytes and a message with apiVersion, kind and the encoded
// object.
import { ProtobufError, ProtobufReader } from './reader.ts'
import { createProtobufWriter } from './writer.ts'

export const PROTOBUF_MEDIA = 'application/vnd.kubernetes.protobuf'

export interface ProtobufEnvelope {
  /** '' if the encoder did not set it. */
  readonly apiVersion: string
  readonly kind: string
  /** The encoded object. */
  readonly raw: Uint8Array
}

const MAGIC = Buffer.from('k8s\0')

export function decodeEnvelope(bytes: Uint8Array): ProtobufEnvelope {
  if (!MAGIC.equals(bytes.subarray(0, MAGIC.length))) {
    throw new ProtobufError('the body does not begin with the magic bytes "k8s\\0" of a protobuf object')
  }
  let type = { apiVersion: '', kind: '' }
  let raw: Uint8Array = new Uint8Array()
  const seenNumbers = new Set<number>()
  const reader = new ProtobufReader(bytes, MAGIC.length)
  while (reader.moveToNextField()) {
    if (reader.number > 4) throw new ProtobufError(`the envelope has the unknown field ${reader.number}`)
    if (seenNumbers.has(reader.number)) throw new ProtobufError(`the envelope has field ${reader.number} twice`)
    seenNumbers.add(reader.number)
    if (reader.number === 1) type = readTypeMeta(reader.readMessage())
    else if (reader.number === 2) raw = reader.readBytes()
    else if (reader.number === 3) checkSupported('contentEncoding', reader.readString(), '')
    else checkSupported('contentType', reader.readString(), PROTOBUF_MEDIA)
  }
  if (seenNumbers.size === 0) throw new ProtobufError('the envelope is empty')
  return { ...type, raw }
}

function readTypeMeta(message: ProtobufReader): { apiVersion: string; kind: string } {
  let apiVersion = ''
  let kind = ''
  while (message.moveToNextField()) {
    if (message.number === 1) apiVersion = message.readString()
    else if (message.number === 2) kind = message.readString()
    else message.skipField()
  }
  return { apiVersion, kind }
}

function checkSupported(field: string, value: string, supportedValue: string): void {
  if (value === '' || value === supportedValue) return
  throw new ProtobufError(`the envelope has ${field} ${JSON.stringify(value.slice(0, 100))}, which is not supported`)
}

export function encodeEnvelope({ apiVersion, kind, raw }: ProtobufEnvelope): Buffer {
  const { head, tail } = encodeEnvelopeParts({ apiVersion, kind, rawLength: raw.length })
  return Buffer.concat([head, raw, tail])
}

/** Returns the bytes of an envelope before and after an object of this length. */
export function encodeEnvelopeParts({
  apiVersion,
  kind,
  rawLength,
}: Pick<ProtobufEnvelope, 'apiVersion' | 'kind'> & { readonly rawLength: number }): { head: Buffer; tail: Buffer } {
  const head = createProtobufWriter()
  head.writeMessage(1, () => {
    head.writeString(1, apiVersion)
    head.writeString(2, kind)
  })
  head.writeBytesHead(2, rawLength)
  const tail = createProtobufWriter()
  tail.writeString(3, '')
  tail.writeString(4, '')
  return { head: Buffer.concat([MAGIC, head.toBytes()]), tail: tail.toBytes() }
}
