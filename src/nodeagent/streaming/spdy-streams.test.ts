import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { SPDY_COMMAND_PROTOCOLS, spdyStreams } from './spdy-streams.ts'

const REQUEST = { stdin: false, stdout: true, stderr: false, tty: false }

function openStreams() {
  const clock = manualClock()
  const socket = new PassThrough()
  const streams = spdyStreams({ socket, head: Buffer.alloc(0), protocol: SPDY_COMMAND_PROTOCOLS[0]! }, REQUEST, clock)
  return { clock, socket, streams }
}

it('spdyStreams reports a client that closes the connection before it has opened its streams', async () => {
  const { socket, streams } = openStreams()
  socket.end()
  await expect(streams).rejects.toThrow('the client closed the connection before it had opened all streams')
})

it('spdyStreams reports a client that violates the protocol', async () => {
  const { socket, streams } = openStreams()
  socket.end(Buffer.from([0x80, 0x02, 0, 1, 0, 0, 0, 0]))
  await expect(streams).rejects.toThrow('a control frame has version 2; expected 3')
})

it('spdyStreams reports a client that does not open its streams in time', async () => {
  const { clock, streams } = openStreams()
  const result = expect(streams).rejects.toThrow('timed out waiting for client to create streams')
  await clock.advance(30_000)
  await result
})
