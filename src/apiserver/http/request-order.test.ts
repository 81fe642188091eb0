import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createRequestOrder } from './request-order.ts'

describe('the order of requests', () => {
  it('SYS-19 starts a request of a connection after the response to the previous one, and closes a connection with too many waiting requests', () => {
    const runInOrder = createRequestOrder()
    let isDestroyed = false
    const socket = { destroy: () => (isDestroyed = true) }
    const startedRequests: number[] = []
    const responses = Array.from({ length: 18 }, (_, index) => {
      const outgoing = Object.assign(new EventEmitter(), { socket: index === 0 ? socket : null })
      const incoming = { socket } as unknown as IncomingMessage
      runInOrder(incoming, outgoing as unknown as ServerResponse, () => startedRequests.push(index))
      return outgoing
    })
    expect(startedRequests).toEqual([0])
    responses[1]!.emit('socket')
    expect(startedRequests).toEqual([0, 1])
    expect(isDestroyed).toBe(true)
  })

  it('does not delay requests of other connections', () => {
    const runInOrder = createRequestOrder()
    const startedRequests: string[] = []
    for (const name of ['a', 'b']) {
      const socket = {}
      const outgoing = Object.assign(new EventEmitter(), { socket })
      runInOrder({ socket } as IncomingMessage, outgoing as unknown as ServerResponse, () => startedRequests.push(name))
    }
    expect(startedRequests).toEqual(['a', 'b'])
  })
})
