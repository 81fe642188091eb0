// Encodes the SPDY/3.1 frames that kubectl uses, and decodes frame headers and control frames. Header blocks are
// compressed over the whole connection (header-blocks.ts); connection.ts reads and writes the frames.
//   control frame   control bit (1), 15 bits version, 16 bits type, 8 bits flags, 24 bits length
//   data frame      control bit (0), 31 bits stream id, 8 bits flags, 24 bits length

export const FRAME_HEADER_BYTES = 8
export const FLAG_FIN = 0x01
const VERSION = 3
const CONTROL_BIT = 0x8000
const STREAM_MASK = 0x7fffffff

export const FRAME_TYPES = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  headers: 8,
  windowUpdate: 9,
} as const

/** Status codes of RST_STREAM. */
export const RST_STATUS = { protocolError: 1, invalidStream: 2, refusedStream: 3 } as const

export class SpdyError extends Error {
  override readonly name = 'SpdyError'
}

export type FrameHeader =
  | { readonly is: 'control'; readonly type: number; readonly flags: number; readonly length: number }
  | { readonly is: 'data'; readonly streamId: number; readonly flags: number; readonly length: number }

export function decodeFrameHeader(bytes: Buffer): FrameHeader {
  const flags = bytes[4]!
  const length = bytes.readUIntBE(5, 3)
  const first = bytes.readUInt16BE(0)
  if ((first & CONTROL_BIT) === 0) return { is: 'data', streamId: bytes.readUInt32BE(0) & STREAM_MASK, flags, length }
  const version = first & ~CONTROL_BIT
  if (version !== VERSION) throw new SpdyError(`a control frame has version ${version}; expected ${VERSION}`)
  return { is: 'control', type: bytes.readUInt16BE(2), flags, length }
}

export type ControlFrame =
  | { readonly is: 'synStream'; readonly streamId: number; readonly isFinal: boolean; readonly headerBlock: Buffer }
  | { readonly is: 'headers'; readonly streamId: number; readonly isFinal: boolean; readonly headerBlock: Buffer }
  | { readonly is: 'rstStream'; readonly streamId: number }
  | { readonly is: 'ping'; readonly id: number }
  | { readonly is: 'goAway' }
  /** A frame without effect on this end. */
  | { readonly is: 'ignored' }

/** The number of bytes before the header block, or of the whole payload for frames without one. */
const PAYLOAD_BYTES_MIN: Readonly<Record<number, number>> = {
  [FRAME_TYPES.synStream]: 10,
  [FRAME_TYPES.synReply]: 4,
  [FRAME_TYPES.rstStream]: 8,
  [FRAME_TYPES.ping]: 4,
  [FRAME_TYPES.goAway]: 8,
  [FRAME_TYPES.headers]: 4,
  [FRAME_TYPES.windowUpdate]: 8,
}

export function decodeControlFrame(type: number, flags: number, payload: Buffer): ControlFrame {
  if (payload.length < (PAYLOAD_BYTES_MIN[type] ?? 0)) throw new SpdyError(`a frame of type ${type} is too short`)
  const isFinal = (flags & FLAG_FIN) !== 0
  const streamId = payload.length < 4 ? 0 : payload.readUInt32BE(0) & STREAM_MASK
  switch (type) {
    case FRAME_TYPES.synStream:
      return { is: 'synStream', streamId, isFinal, headerBlock: payload.subarray(10) }
    case FRAME_TYPES.headers:
    case FRAME_TYPES.synReply: // this end opens no streams, but must decode the header block to keep the compression state
      return { is: 'headers', streamId, isFinal, headerBlock: payload.subarray(4) }
    case FRAME_TYPES.rstStream:
      return { is: 'rstStream', streamId }
    case FRAME_TYPES.ping:
      return { is: 'ping', id: payload.readUInt32BE(0) }
    case FRAME_TYPES.goAway:
      return { is: 'goAway' }
    default:
      return { is: 'ignored' }
  }
}

export function encodeControlFrame(type: number, payload: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES)
  header.writeUInt16BE(CONTROL_BIT | VERSION, 0)
  header.writeUInt16BE(type, 2)
  header[4] = flags
  header.writeUIntBE(payload.length, 5, 3)
  return Buffer.concat([header, payload])
}

export function encodeDataHeader(streamId: number, length: number, flags = 0): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES)
  header.writeUInt32BE(streamId & STREAM_MASK, 0)
  header[4] = flags
  header.writeUIntBE(length, 5, 3)
  return header
}

/** Encodes 32-bit numbers, which are the payload of most control frames. */
export function encodeNumbers(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, index * 4)
  return bytes
}
