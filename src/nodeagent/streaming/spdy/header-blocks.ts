// Compresses and decompresses the header blocks of one SPDY connection. Each direction is one zlib stream with the preset
// dictionary, flushed after every block: the number of headers in 32 bits, then the length in 32 bits and the bytes of each name
// and value.
import { constants, createDeflate, createInflate } from 'node:zlib'
import { SPDY_DICTIONARY } from './dictionary.ts'
import { SpdyError } from './frames.ts'

export type Headers = ReadonlyMap<string, string>

/** Decompressed size of a block. A larger one ends the connection. */
const BLOCK_BYTES_MAX = 64 * 1024

/** Calls must not overlap. */
export interface HeaderBlocks {
  decode(block: Uint8Array): Promise<Headers>
  encode(headers: Headers): Promise<Buffer>
  close(): void
}

export function createHeaderBlocks(): HeaderBlocks {
  const inflate = createInflate({ dictionary: SPDY_DICTIONARY })
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY })
  let inflated: Buffer[] = []
  let inflatedBytes = 0
  let inflateError: Error | undefined
  let rejectDecode: (error: Error) => void = () => {}
  inflate.on('data', (chunk: Buffer) => {
    inflatedBytes += chunk.length
    if (inflatedBytes <= BLOCK_BYTES_MAX) inflated.push(chunk)
    else fail(new SpdyError(`a header block has more than ${BLOCK_BYTES_MAX} bytes`))
  })
  inflate.on('error', (error) => fail(new SpdyError(`a header block cannot be decompressed: ${error.message}`)))
  let deflated: Buffer[] = []
  deflate.on('data', (chunk: Buffer) => deflated.push(chunk))
  deflate.on('error', () => {}) // only after `close`

  function fail(error: Error): void {
    inflateError ??= error
    inflate.destroy()
    rejectDecode(inflateError)
  }

  return {
    async decode(block) {
      inflated = []
      inflatedBytes = 0
      await new Promise<void>((resolve, reject) => {
        if (inflateError) return reject(inflateError)
        rejectDecode = reject
        inflate.write(block, (error) => (error ? reject(error) : inflate.flush(constants.Z_SYNC_FLUSH, resolve)))
      })
      return parseHeaders(Buffer.concat(inflated))
    },
    async encode(headers) {
      deflated = []
      await new Promise<void>((resolve) => {
        deflate.write(formatHeaders(headers))
        deflate.flush(constants.Z_SYNC_FLUSH, resolve)
      })
      return Buffer.concat(deflated)
    },
    close() {
      fail(new SpdyError('the connection is closed'))
      deflate.destroy()
    },
  }
}

export function formatHeaders(headers: Headers): Buffer {
  const parts = [...headers].flat().map((text) => {
    const bytes = Buffer.from(text)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  })
  const count = Buffer.alloc(4)
  count.writeUInt32BE(headers.size)
  return Buffer.concat([count, ...parts])
}

export function parseHeaders(bytes: Buffer): Headers {
  let position = 0
  const readNumber = (): number => {
    if (position + 4 > bytes.length) throw new SpdyError('a header block is truncated')
    position += 4
    return bytes.readUInt32BE(position - 4)
  }
  const readText = (): string => {
    const end = readNumber() + position
    if (end > bytes.length) throw new SpdyError('a header block is truncated')
    const text = bytes.toString('utf8', position, end)
    position = end
    return text
  }
  const headers = new Map<string, string>()
  for (let remaining = readNumber(); remaining > 0; remaining--) {
    const name = readText().toLowerCase()
    headers.set(name, readText())
  }
  if (position !== bytes.length) throw new SpdyError('a header block has bytes after its last header')
  return headers
}
