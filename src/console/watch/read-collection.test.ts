import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { Transport } from '../../client/http/transport.ts'
import { openWatch } from './read-collection.ts'

it('openWatch fails with an ApiError if the connection breaks in the body of an error', async () => {
  const body = new Readable({
    read() {
      this.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    },
  })
  const incoming = Object.assign(body, { statusCode: 500, headers: {} }) as unknown as IncomingMessage
  const transport: Partial<Transport> = { open: async () => incoming }
  const options = {
    clock: manualClock(),
    server: 'the server',
    signal: new AbortController().signal,
    path: '/api/v1/pods',
  }
  await expect(openWatch({ ...options, transport: transport as Transport }, '1')).rejects.toMatchObject({
    code: 503,
    message: expect.stringContaining('cannot reach the server: ECONNRESET'),
  })
})
