import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createBodyReader } from './read-body.ts'

const MEBIBYTE = 1024 * 1024

/** A request whose body the test writes. */
function aRequest(headers: Record<string, string> = { 'transfer-encoding': 'chunked' }) {
  return Object.assign(new PassThrough({ highWaterMark: 512 * MEBIBYTE }), { headers }) as unknown as PassThrough &
    IncomingMessage
}

describe('the body reader', () => {
  it('returns the whole body, and an empty one for a request that declares none', async () => {
    const readBody = createBodyReader()
    const request = aRequest()
    const body = readBody(request)
    request.write('ab')
    request.end('cd')
    expect(Buffer.from(await body).toString()).toBe('abcd')
    expect(await readBody(aRequest({}))).toHaveLength(0)
  })

  it('SYS-10 rejects a body that is too large, declared or not', async () => {
    const declaredRequest = aRequest({ 'content-length': String(4 * MEBIBYTE) })
    await expect(createBodyReader()(declaredRequest)).rejects.toMatchObject({ code: 413 })
    const chunkedRequest = aRequest()
    const body = createBodyReader()(chunkedRequest)
    chunkedRequest.write(Buffer.alloc(4 * MEBIBYTE))
    await expect(body).rejects.toMatchObject({ code: 413 })
  })

  it('SYS-19 rejects a body whose connection closes, and stops counting its bytes', async () => {
    const readBody = createBodyReader()
    for (let i = 0; i < 129; i++) {
      const request = aRequest()
      const body = readBody(request).catch((error) => error)
      request.write(Buffer.alloc(2 * MEBIBYTE))
      request.destroy(new Error('aborted'))
      expect(await body).toMatchObject({ code: 400, message: 'the body could not be read: aborted' })
    }
  })

  it('SYS-19 rejects further bytes when all unfinished bodies together are too large, until some end', async () => {
    const readBody = createBodyReader()
    const requests = Array.from({ length: 129 }, () => aRequest())
    const bodies = requests.map((request) => readBody(request).catch((error) => error))
    for (const request of requests) request.write(Buffer.alloc(2 * MEBIBYTE))
    expect(await bodies[128]).toMatchObject({ code: 429 })
    requests[0]!.end()
    expect(await bodies[0]).toHaveLength(2 * MEBIBYTE)
    const nextRequest = aRequest()
    const body = readBody(nextRequest)
    nextRequest.end(Buffer.alloc(2 * MEBIBYTE))
    expect(await body).toHaveLength(2 * MEBIBYTE)
    for (const request of requests) request.destroy()
  })
})
