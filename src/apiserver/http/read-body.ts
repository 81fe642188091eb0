// Reads the bodies of requests. It limits the size and the time of each body, and the size of all bodies together.
import type { IncomingMessage } from 'node:http'
import { ApiError, badRequest, bodyTooLarge, tooManyRequests } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'

export type ReadBody = (incoming: IncomingMessage) => Promise<Uint8Array>

const BODY_BYTES_MAX = 3 * 1024 * 1024
/** Bytes of all bodies that the server is receiving. */
const BODY_BYTES_TOTAL_MAX = 256 * 1024 * 1024
const BODY_TIMEOUT_MS = 30_000

export function createBodyReader(clock: Clock): ReadBody {
  let totalBytes = 0
  const expireLate = createDeadlines(clock)
  return (incoming) => {
    const { 'content-length': contentLength, 'transfer-encoding': transferEncoding } = incoming.headers
    const declaredSize = Number(contentLength ?? 0)
    if (declaredSize === 0 && transferEncoding === undefined) return NO_BODY
    if (declaredSize > BODY_BYTES_MAX) return Promise.reject(bodyTooLarge(BODY_BYTES_MAX))
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      const settle = () => {
        cancelDeadline()
        totalBytes -= size
      }
      const fail = (error: ApiError) => {
        incoming.pause()
        incoming.removeAllListeners('data')
        settle()
        size = 0
        reject(error)
      }
      const cancelDeadline = expireLate(() =>
        fail(new ApiError(408, 'Timeout', `the body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s`)),
      )
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length
        totalBytes += chunk.length
        if (size > BODY_BYTES_MAX) fail(bodyTooLarge(BODY_BYTES_MAX))
        else if (totalBytes > BODY_BYTES_TOTAL_MAX) {
          fail(tooManyRequests('the server is receiving too many large bodies; try again in a second'))
        } else chunks.push(chunk)
      })
      incoming.on('end', () => {
        settle()
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      })
      // An incomplete body is a client error, so return 400, although the client may not receive it.
      incoming.on('error', (error) => fail(badRequest(`the body could not be read: ${error.message}`)))
      incoming.on('aborted', () => fail(badRequest('the client closed the connection before its request was complete')))
    })
  }
}

const NO_BODY = Promise.resolve(new Uint8Array())

/** Returns a function that calls `expire` after BODY_TIMEOUT_MS, or at most CHECK_MS later. One timer serves all bodies. */
function createDeadlines(clock: Clock): (expire: () => void) => () => void {
  const CHECK_MS = BODY_TIMEOUT_MS / 10
  const deadlines = new Map<() => void, number>()
  let isTimerSet = false
  const check = () => {
    isTimerSet = false
    const nowMs = clock.monotonicMs()
    for (const [expire, atMs] of deadlines) {
      if (atMs > nowMs) break
      deadlines.delete(expire)
      expire()
    }
    startTimer()
  }
  const startTimer = () => {
    if (isTimerSet || deadlines.size === 0) return
    isTimerSet = true
    clock.after(CHECK_MS, check)
  }
  return (expire) => {
    deadlines.set(expire, clock.monotonicMs() + BODY_TIMEOUT_MS)
    startTimer()
    return () => void deadlines.delete(expire)
  }
}
