import { constants, createDeflate, deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SPDY_DICTIONARY } from './dictionary.ts'
import { SpdyError } from './frames.ts'
import { createHeaderBlocks, formatHeaders, parseHeaders } from './header-blocks.ts'

const someHeaders = fc
  .dictionary(
    fc.string({ unit: fc.constantFrom(...'abcdefgxyz-'), minLength: 1, maxLength: 20 }),
    fc.string({ maxLength: 50 }),
    { maxKeys: 8, noNullPrototype: true },
  )
  .map((headers) => new Map(Object.entries(headers)))

describe('header blocks', () => {
  it('decode to the encoded headers, in connection order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someHeaders, { minLength: 1, maxLength: 5 }), async (blocks) => {
        const [sender, receiver] = [createHeaderBlocks(), createHeaderBlocks()]
        for (const headers of blocks) expect(await receiver.decode(await sender.encode(headers))).toEqual(headers)
        sender.close()
        receiver.close()
      }),
      { seed: 1, numRuns: 50 },
    )
  })

  it('use the dictionary of the specification, which has 1423 bytes and a known checksum', () => {
    expect(SPDY_DICTIONARY.length).toBe(1423)
    const bytes = deflateSync(formatHeaders(new Map()), { dictionary: SPDY_DICTIONARY })
    expect(bytes.subarray(2, 6).toString('hex')).toBe('e3c6a7c2')
  })

  it('reject invalid bytes with a SpdyError', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 100 }), async (bytes) => {
        expect(() => parseHeaders(Buffer.concat([Buffer.from(bytes), Buffer.from('x')]))).toThrow(SpdyError)
        const blocks = createHeaderBlocks()
        await expect(blocks.decode(bytes)).rejects.toThrow(SpdyError)
        blocks.close()
      }),
      { seed: 1, numRuns: 50 },
    )
  })

  it('reject a block that decompresses to more than 64 KiB, and all later blocks', async () => {
    const deflate = createDeflate({ dictionary: SPDY_DICTIONARY })
    const chunks: Buffer[] = []
    deflate.on('data', (chunk) => chunks.push(chunk))
    deflate.write(Buffer.alloc(50_000_000))
    await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve))
    const blocks = createHeaderBlocks()
    await expect(blocks.decode(Buffer.concat(chunks))).rejects.toThrow(/more than 65536 bytes/)
    await expect(blocks.decode(Buffer.alloc(1))).rejects.toThrow(/more than 65536 bytes/)
    blocks.close()
    deflate.destroy()
  })
})
