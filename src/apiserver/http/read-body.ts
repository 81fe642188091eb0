// Reads request bodies. It limits the size of each body and of all bodies together; https-listener.ts limits the time to
// send one.
import type { IncomingMessage } from 'node:http'
import { type ApiError, badRequest, bodyTooLarge, tooManyRequests } from '../../api/status-error.ts'

export type ReadBody = (incoming: IncomingMessage) => Promise<Uint8Array>

const BODY_BYTES_MAX = 3 * 1024 * 1024
/** Bytes of all bodies that the server is receiving. */
const BODY_BYTES_TOTAL_MAX = 256 * 1024 * 1024

export function createBodyReader(): ReadBody {
  let totalBytes = 0
  return (incoming) => {
    const { 'content-length': contentLength, 'transfer-encoding': transferEncoding } = incoming.headers
    const declaredSize = Number(contentLength ?? 0)
    if (declaredSize === 0 && transferEncoding === undefined) return NO_BODY
    if (declaredSize > BODY_BYTES_MAX) return Promise.reject(bodyTooLarge(BODY_BYTES_MAX))
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      const fail = (error: ApiError) => {
        incoming.pause()
        incoming.removeAllListeners('data')
        totalBytes -= size
        size = 0
        reject(error)
      }
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length
        totalBytes += chunk.length
        if (size > BODY_BYTES_MAX) fail(bodyTooLarge(BODY_BYTES_MAX))
        else if (totalBytes > BODY_BYTES_TOTAL_MAX) {
          fail(tooManyRequests('the server is receiving too many large bodies; try again in a second'))
        } else chunks.push(chunk)
      })
      incoming.on('end', () => {
        totalBytes -= size
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      })
      // An incomplete body is a client error, so return 400, although the client may not receive it.
      incoming.on('error', (error) => fail(badRequest(`the body could not be read: ${error.message}`)))
    })
  }
}

const NO_BODY = Promise.resolve(new Uint8Array())
