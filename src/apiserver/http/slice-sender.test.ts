import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { LongBody } from './messages.ts'
import { createSliceSender, type SlicedResponse } from './slice-sender.ts'

let clock: ReturnType<typeof manualClock>
let sender: ReturnType<typeof createSliceSender>
beforeEach(() => {
  clock = manualClock()
  sender = createSliceSender({ clock, log: silentLog })
})

/** A response whose client receives nothing until the test emits `drain`. */
class FakeResponse extends EventEmitter implements SlicedResponse {
  readonly chunks: string[] = []
  destroyed = false
  isEnded = false
  write(chunk: Uint8Array) {
    this.chunks.push(Buffer.from(chunk).toString())
    return false
  }
  end() {
    this.isEnded = true
    this.emit('close')
  }
  destroy() {
    this.destroyed = true
    this.emit('close')
  }
}

function bodyOf(...slices: string[]): LongBody {
  return {
    byteLength: undefined,
    storedBytes: 0,
    next: () => (slices.length === 0 ? undefined : Buffer.from(slices.shift()!)),
  }
}
const settle = () => clock.nextTurn()

describe('the slice sender', () => {
  it('SYS-19 encodes a slice only after the client has received the one before', async () => {
    const response = new FakeResponse()
    sender.send(response, bodyOf('a', 'b'))
    await settle()
    expect(response.chunks).toEqual(['a'])
    response.emit('drain')
    await settle()
    expect(response.chunks).toEqual(['a', 'b'])
    response.emit('drain')
    await settle()
    expect(response.isEnded).toBe(true)
  })

  it('SYS-19 waits a minute before it disconnects a client that does not read, or 5 s if other requests wait', async () => {
    const seats = { hasWaiters: false, release: () => {} }
    const [idleResponse, contendedResponse] = [new FakeResponse(), new FakeResponse()]
    sender.send(idleResponse, bodyOf('a', 'b'), seats)
    sender.send(contendedResponse, bodyOf('a', 'b'), { ...seats, hasWaiters: true })
    await clock.advance(4_000)
    expect([idleResponse.destroyed, contendedResponse.destroyed]).toEqual([false, false])
    await clock.advance(2_000)
    expect([idleResponse.destroyed, contendedResponse.destroyed]).toEqual([false, true])
    await clock.advance(60_000)
    expect(idleResponse.destroyed).toBe(true)
  })

  it('keeps a slow client that reads', async () => {
    const response = new FakeResponse()
    sender.send(response, bodyOf(...'abcdefghi'), { hasWaiters: true, release: () => {} })
    await settle()
    for (let slice = 0; slice < 10; slice++) {
      await clock.advance(4_000)
      response.emit('drain')
      await settle()
    }
    expect([response.destroyed, response.isEnded]).toEqual([false, true])
  })

  it('closes the connection if a slice cannot be encoded', async () => {
    const response = new FakeResponse()
    sender.send(response, {
      ...bodyOf(),
      next: () => {
        throw new Error('broken')
      },
    })
    await settle()
    expect(response.destroyed).toBe(true)
  })
})
