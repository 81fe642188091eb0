import { EventEmitter } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { answerPings } from './answer-pings.ts'

function createPingedSocket({ isRead }: { readonly isRead: boolean }) {
  const pongs: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    pong(data: Buffer, _mask: boolean, done: () => void) {
      pongs.push(String(data))
      if (isRead) done()
    },
    terminate: vi.fn(),
  })
  answerPings(socket)
  return { socket, pongs }
}

describe('answerPings', () => {
  it('answers each ping with its data', () => {
    const { socket, pongs } = createPingedSocket({ isRead: true })
    const sent = Array.from({ length: 10_000 }, (_, index) => `ping ${index}`)
    for (const data of sent) socket.emit('ping', Buffer.from(data))
    expect(pongs).toEqual(sent)
    expect(socket.terminate).not.toHaveBeenCalled()
  })

  it('SYS-19 closes the connection of a client that does not read the pongs', () => {
    const { socket, pongs } = createPingedSocket({ isRead: false })
    while (socket.terminate.mock.calls.length === 0) socket.emit('ping', Buffer.alloc(125))
    const bytes = pongs.length * 127
    expect(bytes).toBeGreaterThan(32 * 1024)
    expect(bytes).toBeLessThanOrEqual(64 * 1024)
  })
})
