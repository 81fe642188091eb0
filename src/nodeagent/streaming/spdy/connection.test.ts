import { Duplex, PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SpdyStream, serveSpdy } from './connection.ts'
import {
  decodeFrameHeader,
  encodeControlFrame,
  encodeDataHeader,
  encodeNumbers,
  FLAG_FIN,
  FRAME_TYPES,
} from './frames.ts'
import { createHeaderBlocks } from './header-blocks.ts'

/** Creates a connection. Tests write and read its client side directly. */
function connect(onStream: (stream: SpdyStream) => boolean = () => true, onActivity = () => {}) {
  const [toServer, toClient] = [new PassThrough(), new PassThrough()]
  const socket = Duplex.from({ readable: toServer, writable: toClient })
  const connection = serveSpdy({ socket, head: Buffer.alloc(0), onStream, onActivity })
  const blocks = createHeaderBlocks()
  return {
    connection,
    toServer,
    toClient,
    async openStream(id: number, type: string) {
      const block = await blocks.encode(new Map([['streamtype', type]]))
      toServer.write(
        encodeControlFrame(FRAME_TYPES.synStream, Buffer.concat([encodeNumbers(id, 0), Buffer.alloc(2), block])),
      )
    },
    sendData: (id: number, data: string, flags = 0) =>
      toServer.write(Buffer.concat([encodeDataHeader(id, data.length, flags), Buffer.from(data)])),
  }
}

describe('SPDY connection', () => {
  it('SYS-26 delivers the data of a stream until the stream ends', async () => {
    const streams: SpdyStream[] = []
    const client = connect((stream) => streams.push(stream) > 0)
    await client.openStream(1, 'stdin')
    client.sendData(1, 'hello ')
    client.sendData(1, 'world', FLAG_FIN)
    await expect.poll(() => streams.length).toBe(1)
    expect(streams[0]!.headers.get('streamtype')).toBe('stdin')
    expect(await text(streams[0]!)).toBe('hello world')
    client.toServer.end()
    expect(await client.connection.ended).toBeUndefined()
  })

  it('SYS-26 replies to a stream before it sends data', async () => {
    const streams: SpdyStream[] = []
    const client = connect((stream) => streams.push(stream) > 0)
    const received: Buffer[] = []
    client.toClient.on('data', (chunk) => received.push(chunk))
    await client.openStream(1, 'stdout')
    await expect.poll(() => streams.length).toBe(1)
    streams[0]!.end('output')
    await expect.poll(() => Buffer.concat(received).includes('output')).toBe(true)
    expect(decodeFrameHeader(Buffer.concat(received))).toMatchObject({ is: 'control', type: FRAME_TYPES.synReply })
    client.toServer.end()
  })

  it('SYS-26 reports activity when a client receives output and sends nothing', async () => {
    const streams: SpdyStream[] = []
    let activities = 0
    const client = connect(
      (stream) => streams.push(stream) > 0,
      () => activities++,
    )
    client.toClient.resume()
    await client.openStream(1, 'stdout')
    await expect.poll(() => streams.length).toBe(1)
    await new Promise((resolve) => streams[0]!.write('first', resolve))
    const activitiesBefore = activities
    await new Promise((resolve) => streams[0]!.write('second', resolve))
    expect(activities).toBeGreaterThan(activitiesBefore)
    client.connection.destroy()
  })

  it('SYS-26 stops reading from the connection while a stream is not read', async () => {
    const client = connect(() => true)
    await client.openStream(1, 'stdin')
    const chunk = 'x'.repeat(60_000)
    let writtenChunks = 0
    const write = async () => {
      for (; writtenChunks < 100; writtenChunks++) {
        if (!client.sendData(1, chunk)) await new Promise((resolve) => client.toServer.once('drain', resolve))
      }
    }
    void write()
    await new Promise((resolve) => setImmediate(resolve))
    await expect.poll(() => client.toServer.writableNeedDrain).toBe(true)
    expect(writtenChunks).toBeLessThan(20)
    client.connection.destroy()
  })

  it('SYS-26 resets a stream that onStream does not accept', async () => {
    const client = connect(() => false)
    await client.openStream(1, 'other')
    const reply = await new Promise<Buffer>((resolve) => client.toClient.once('data', resolve))
    expect(decodeFrameHeader(reply)).toMatchObject({ is: 'control', type: FRAME_TYPES.rstStream })
    client.connection.destroy()
  })

  it('SYS-26 closes if the client does not read the replies to its pings', async () => {
    const client = connect()
    const pings = Array.from({ length: 10_000 }, (_, id) => encodeControlFrame(FRAME_TYPES.ping, encodeNumbers(id)))
    client.toServer.write(Buffer.concat(pings))
    expect((await client.connection.ended)?.message).toContain('does not read the responses')
  })

  it('SYS-26 closes if the client does not read the replies to the streams it opens', async () => {
    const client = connect(() => false)
    client.toServer.on('error', () => {}) // the connection is closed while the client writes
    let error: Error | undefined
    void client.connection.ended.then((reason) => {
      error = reason
    })
    for (let id = 1; id < 20_000 && !error; id += 2) await client.openStream(id, 'other')
    expect(error?.message).toContain('does not read the responses')
  })

  it('SYS-26 ends with an error for hostile bytes, and never throws', async () => {
    const frames = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 40 }))
        .map(([type, flags, payload]) => new Uint8Array(encodeControlFrame(type, payload, flags))),
      fc
        .tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 0xffffff }), fc.integer({ min: 0, max: 255 }))
        .map(([streamId, length, flags]) => new Uint8Array(encodeDataHeader(streamId, length, flags))),
    )
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(frames, { maxLength: 12 }), async (opensFirst, hostileFrames) => {
        const client = connect((stream) => {
          stream.resume()
          return true
        })
        client.toClient.resume()
        if (opensFirst) await client.openStream(1, 'stdin')
        for (const frame of hostileFrames) client.toServer.write(frame)
        client.toServer.end()
        const error = await client.connection.ended
        if (error) expect(error.name).toBe('SpdyError')
      }),
      { seed: 1, numRuns: 300 },
    )
  })
})
