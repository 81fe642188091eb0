import { expect, it } from 'vitest'
import type { WatchCommand } from '../../protocol.ts'
import { reconnectDelayMs, WatchSocket } from './watch-socket.ts'

/** A WebSocket whose events the test triggers. */
class FakeSocket {
  readonly sent: WatchCommand[] = []
  onopen: (() => void) | undefined
  onclose: ((event: { code: number }) => void) | undefined
  onmessage: ((event: { data: string }) => void) | undefined
  send(text: string) {
    this.sent.push(JSON.parse(text))
  }
  close() {}
}

function createSocket() {
  const connections: FakeSocket[] = []
  const timers: (() => void)[] = []
  const ends: string[] = []
  const socket = new WatchSocket({
    connect: () => {
      const connection = new FakeSocket()
      connections.push(connection)
      return connection as unknown as WebSocket
    },
    nowMs: () => 1_000,
    setTimer: (run) => timers.push(run),
    clearTimer: () => {},
    random: () => 1,
    onSessionEnd: () => ends.push('ended'),
  })
  return { socket, connections, ends, runTimer: () => timers.shift()?.() }
}

it('SYS-13 resumes every watch at its last revision after the connection was lost', () => {
  const { socket, connections, runTimer } = createSocket()
  let rev: string | undefined
  const messages: unknown[] = []
  socket.watch({ path: '/api/v1/pods', rev: () => rev, receive: (message) => messages.push(message) })
  socket.open()
  connections[0]!.onopen?.()
  expect(connections[0]!.sent).toEqual([{ op: 'watch', id: 1, path: '/api/v1/pods' }])
  connections[0]!.onmessage?.({ data: '{"id":1,"type":"SYNCED","rev":"7"}' })
  expect(messages).toHaveLength(1)
  rev = '7'
  connections[0]!.onclose?.({ code: 1006 })
  expect(socket.state.value).toEqual({ is: 'lost', sinceMs: 1_000, retryAtMs: 1_500 })
  runTimer()
  connections[1]!.onopen?.()
  expect(connections[1]!.sent).toEqual([{ op: 'watch', id: 1, path: '/api/v1/pods', rev: '7' }])
  expect(socket.state.value.is).toBe('open')
})

it('ends a watch on the server, and does not start it again', () => {
  const { socket, connections, runTimer } = createSocket()
  socket.open()
  connections[0]!.onopen?.()
  const end = socket.watch({ path: '/api/v1/pods', rev: () => undefined, receive: () => {} })
  end()
  expect(connections[0]!.sent.at(-1)).toEqual({ op: 'unwatch', id: 1 })
  connections[0]!.onclose?.({ code: 1006 })
  runTimer()
  connections[1]!.onopen?.()
  expect(connections[1]!.sent).toEqual([])
})

it('does not reconnect while it is paused', () => {
  const { socket, connections } = createSocket()
  socket.open()
  connections[0]!.onopen?.()
  socket.pause()
  connections[0]!.onclose?.({ code: 1006 })
  expect(socket.state.value.is).toBe('paused')
  expect(connections).toHaveLength(1)
})

it('increases the delay before each attempt, up to 15 s', () => {
  expect([0, 1, 2, 10].map((attempt) => reconnectDelayMs(attempt, () => 1))).toEqual([500, 1_000, 2_000, 15_000])
})

it('SYS-13 reports that the session has ended', () => {
  const { socket, connections, ends } = createSocket()
  socket.open()
  connections[0]!.onopen?.()
  connections[0]!.onclose?.({ code: 4401 })
  expect(ends).toEqual(['ended'])
  expect(socket.state.value.is).toBe('lost')
})
