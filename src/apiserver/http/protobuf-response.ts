// Encodes responses as protobuf: objects, lists and Status in their envelope, and the frames of a watch.
import { objectMeta } from '../../api/kinds/shared/meta-schema.ts'
import { encodeProtobuf } from '../../api/protobuf/encode.ts'
import { encodeEnvelope } from '../../api/protobuf/envelope.ts'
import { createProtobufWriter } from '../../api/protobuf/writer.ts'
import { list, type ObjectType, object, opt, req } from '../../api/schema.ts'
import { listMeta } from '../openapi/envelope-types.ts'

/** A response's content. Its fields are those of the type that accompanies it. */
export interface TypedValue {
  readonly kind: string
  readonly apiVersion: string
}

export const partialObjectMetadata: ObjectType = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata',
  'The metadata of an object.',
  { metadata: opt(1, objectMeta, 'Standard object metadata.') },
)

/** Returns the type of a list with items of this type. All lists have the same field numbers. */
export function listTypeOf(item: ObjectType): ObjectType {
  let type = listTypes.get(item)
  if (!type) {
    type = object(`${item.name}List`, 'A list.', {
      metadata: opt(1, listMeta, 'Metadata of the list.'),
      items: req(2, list(item), 'The items.'),
    })
    listTypes.set(item, type)
  }
  return type
}
const listTypes = new WeakMap<ObjectType, ObjectType>()

export const encodeTypedValue = (type: ObjectType, value: TypedValue): Buffer =>
  encodeEnvelope({ apiVersion: value.apiVersion, kind: value.kind, raw: encodeProtobuf(type, value) })

/** The size of the length prefix of a watch event. */
const FRAME_HEAD_BYTES = 4

/** Encodes one event of a watch: its length in four bytes, and the event without an envelope. */
export function encodeFrame(type: string, object: Uint8Array): Buffer {
  const writer = createProtobufWriter()
  writer.writeString(1, type)
  writer.writeMessage(2, () => writer.writeBytes(1, object))
  const event = writer.toBytes()
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + event.length)
  frame.writeUInt32BE(event.length, 0)
  event.copy(frame, FRAME_HEAD_BYTES)
  return frame
}
