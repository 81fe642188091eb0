// The server side of a SPDY/3.1 connection on an upgraded socket. The client opens streams; each is a Duplex. Reading from the
// socket stops while a stream is not read, and a write completes when the socket has accepted it, so neither end buffers more
// than a bounded number of bytes. Flow-control windows are not used, because Kubernetes clients do not enforce them.
import { Duplex } from 'node:stream'
import {
  decodeControlFrame,
  decodeFrameHeader,
  encodeControlFrame,
  encodeDataHeader,
  encodeNumbers,
  FLAG_FIN,
  FRAME_HEADER_BYTES,
  FRAME_TYPES,
  RST_STATUS,
  SpdyError,
} from './frames.ts'
import { createHeaderBlocks, type Headers } from './header-blocks.ts'

export interface SpdyStream extends Duplex {
  readonly id: number
  readonly headers: Headers
}

export interface SpdyConnection {
  /** Resolves when the connection has ended, with the reason if the client violated the protocol. */
  readonly ended: Promise<Error | undefined>
  /** Sends GOAWAY and closes the connection after pending writes. */
  close(): void
  destroy(): void
}

export interface SpdyOptions {
  readonly socket: Duplex
  /** Bytes that were received with the upgrade request. */
  readonly head: Uint8Array
  /** Called for each new stream. Returns whether it is accepted; a refused stream is reset. */
  onStream(stream: SpdyStream): boolean
  /** Called whenever bytes arrive, and whenever the socket has accepted bytes. */
  onActivity?(): void
}

/** A larger control frame ends the connection. */
const CONTROL_BYTES_MAX = 64 * 1024
/** Open streams of a connection. Further ones are refused. */
const STREAMS_MAX = 1_024
/**
 * Bytes of replies to control frames (pings, refused streams) that the client has not read. Beyond this the connection is closed.
 */
const PENDING_CONTROL_BYTES_MAX = 64 * 1024
const DATA_FRAME_BYTES_MAX = 64 * 1024
/** Bytes of a stream that wait for its reader. Beyond this, reading from the connection pauses. */
const STREAM_BYTES_MAX = 64 * 1024

export function serveSpdy({ socket, head, onStream, onActivity }: SpdyOptions): SpdyConnection {
  const streams = new Map<number, OpenStream>()
  const headerBlocks = createHeaderBlocks()
  /** Resolves when the socket has accepted the latest SYN_REPLY. */
  let lastReply: Promise<unknown> = Promise.resolve()
  let lastStreamId = 0
  let pendingControlBytes = 0

  /** Resolves when the socket has accepted the bytes. */
  const send = (...parts: readonly Uint8Array[]): Promise<void> =>
    new Promise((resolve, reject) => {
      if (socket.destroyed || socket.writableEnded) return reject(new SpdyError('the connection is closed'))
      socket.cork()
      for (const part of parts.slice(0, -1)) socket.write(part)
      socket.write(parts.at(-1)!, (error) => {
        if (error) return reject(error)
        onActivity?.()
        resolve()
      })
      socket.uncork()
    })
  function sendControl(type: number, payload: Uint8Array): void {
    const frame = encodeControlFrame(type, payload)
    if (pendingControlBytes + frame.length > PENDING_CONTROL_BYTES_MAX) {
      const message = 'the client does not read the responses to its control frames'
      socket.destroy(new SpdyError(message))
      return
    }
    pendingControlBytes += frame.length
    const settle = (): void => {
      pendingControlBytes -= frame.length
    }
    send(frame).then(settle, settle)
  }

  class OpenStream extends Duplex implements SpdyStream {
    readonly id: number
    readonly headers: Headers
    onRead: () => void = () => {}
    /** Whether to reset the stream when it is destroyed. Not after the client has reset it or the connection has ended. */
    sendsReset = true

    constructor(id: number, headers: Headers) {
      super({
        readableHighWaterMark: STREAM_BYTES_MAX,
        writableHighWaterMark: DATA_FRAME_BYTES_MAX,
        allowHalfOpen: true,
      })
      this.id = id
      this.headers = headers
      this.on('error', () => {}) // reported by the end of the connection
      this.once('close', () => streams.delete(id))
    }
    override _read(): void {
      this.onRead()
    }
    override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
      this.#sendFrames(chunk).then(() => done(), done)
    }
    override _final(done: (error?: Error | null) => void): void {
      lastReply.then(() => send(encodeDataHeader(this.id, 0, FLAG_FIN))).then(() => done(), done)
    }
    override _destroy(error: Error | null, done: (error: Error | null) => void): void {
      this.onRead()
      if (!this.writableFinished && this.sendsReset) {
        sendControl(FRAME_TYPES.rstStream, encodeNumbers(this.id, RST_STATUS.refusedStream))
      }
      done(error)
    }
    async #sendFrames(chunk: Buffer): Promise<void> {
      await lastReply // the reply to this stream must precede its data
      for (let start = 0; start < chunk.length; start += DATA_FRAME_BYTES_MAX) {
        const part = chunk.subarray(start, start + DATA_FRAME_BYTES_MAX)
        await send(encodeDataHeader(this.id, part.length), part)
      }
    }
  }

  async function openStream(id: number, isFinal: boolean, block: Uint8Array): Promise<void> {
    const headers = await headerBlocks.decode(block)
    if (id % 2 === 0 || id <= lastStreamId) throw new SpdyError(`stream ${id} must have a new, odd number`)
    lastStreamId = id
    const stream = new OpenStream(id, headers)
    if (streams.size >= STREAMS_MAX || !onStream(stream)) {
      stream.destroy()
      return
    }
    streams.set(id, stream)
    if (isFinal) stream.push(null)
    lastReply = headerBlocks
      .encode(new Map())
      .then((reply) => send(encodeControlFrame(FRAME_TYPES.synReply, Buffer.concat([encodeNumbers(id), reply]))))
      .catch(() => {})
    await lastReply
  }

  async function handleControl(type: number, flags: number, payload: Buffer): Promise<void> {
    const frame = decodeControlFrame(type, flags, payload)
    switch (frame.is) {
      case 'synStream':
        return openStream(frame.streamId, frame.isFinal, frame.headerBlock)
      case 'headers':
        await headerBlocks.decode(frame.headerBlock)
        if (frame.isFinal) streams.get(frame.streamId)?.push(null)
        return
      case 'rstStream': {
        const stream = streams.get(frame.streamId)
        if (!stream) return
        stream.sendsReset = false
        stream.destroy(new SpdyError(`the client reset stream ${frame.streamId}`))
        return
      }
      case 'ping':
        return sendControl(FRAME_TYPES.ping, encodeNumbers(frame.id))
      case 'goAway':
      case 'ignored':
    }
  }

  /** Passes the data on, and waits while the stream is not read. */
  async function deliver(stream: OpenStream | undefined, chunk: Buffer): Promise<void> {
    if (!stream || stream.destroyed || stream.readableEnded || stream.push(chunk)) return
    await new Promise<void>((resolve) => {
      stream.onRead = resolve
    })
    stream.onRead = () => {}
  }

  async function readFrames(): Promise<void> {
    const reader = createReader(socket, head, onActivity)
    for (;;) {
      const headerBytes = await reader.readOrEnd(FRAME_HEADER_BYTES)
      if (!headerBytes) return
      const header = decodeFrameHeader(headerBytes)
      if (header.is === 'control') {
        if (header.length > CONTROL_BYTES_MAX) throw new SpdyError(`a control frame has ${header.length} bytes`)
        await handleControl(header.type, header.flags, await reader.read(header.length))
        continue
      }
      const stream = streams.get(header.streamId)
      for (let remaining = header.length; remaining > 0; ) {
        const chunk = await reader.readSome(remaining)
        remaining -= chunk.length
        await deliver(stream, chunk)
      }
      if (header.flags & FLAG_FIN) stream?.push(null)
    }
  }

  socket.on('error', () => {}) // readFrames ends with this error
  const ended = readFrames()
    .then(
      () => undefined,
      (error: Error) => error,
    )
    .then((error) => {
      for (const stream of streams.values()) {
        stream.sendsReset = false
        stream.destroy(error)
      }
      headerBlocks.close()
      socket.destroy()
      return error instanceof SpdyError ? error : undefined
    })
  return {
    ended,
    close() {
      sendControl(FRAME_TYPES.goAway, encodeNumbers(lastStreamId, 0))
      socket.end()
    },
    destroy: () => void socket.destroy(),
  }
}

/** Reads exact numbers of bytes from a stream, which is paused between reads. */
function createReader(socket: Duplex, head: Uint8Array, onActivity: () => void = () => {}) {
  const iterator = (socket as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.from(head)

  async function fill(): Promise<boolean> {
    const next = await iterator.next()
    if (next.done) return false
    onActivity()
    rest = rest.length === 0 ? next.value : Buffer.concat([rest, next.value])
    return true
  }
  const take = (length: number): Buffer => {
    const bytes = rest.subarray(0, length)
    rest = rest.subarray(length)
    return bytes
  }
  async function readOrEnd(length: number): Promise<Buffer | undefined> {
    while (rest.length < length) {
      if (await fill()) continue
      if (rest.length === 0) return undefined
      throw new SpdyError('the connection ended inside a frame')
    }
    return take(length)
  }
  return {
    /** Returns undefined if the connection has ended. */
    readOrEnd,
    async read(length: number): Promise<Buffer> {
      const bytes = length === 0 ? Buffer.alloc(0) : await readOrEnd(length)
      if (!bytes) throw new SpdyError('the connection ended inside a frame')
      return bytes
    },
    /** Returns between 1 and `lengthMax` bytes. */
    async readSome(lengthMax: number): Promise<Buffer> {
      if (rest.length === 0 && !(await fill())) throw new SpdyError('the connection ended inside a frame')
      return take(Math.min(lengthMax, rest.length))
    },
  }
}
