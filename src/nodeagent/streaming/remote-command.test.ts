import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { ContainerProcess } from '../commands/exec-in-container.ts'
import type { TerminalSize } from '../commands/terminal.ts'
import type { CommandStreams } from './command-streams.ts'
import { runRemoteCommand } from './remote-command.ts'

/** Starts a session with a client that reads nothing and a command that runs until it is killed. */
function startSession() {
  const clock = manualClock()
  const stop = new AbortController()
  const sizes: TerminalSize[] = []
  const resizes: (() => void)[] = []
  let isDestroyed = false
  let endClient = () => {}
  const closed = new Promise<void>((resolve) => {
    endClient = resolve
  })
  let endCommand: (code: number) => void = () => {}
  const exitCode = new Promise<number>((resolve) => {
    endCommand = resolve
  })
  let sendSize: (size: TerminalSize) => void = () => {}
  const streams: CommandStreams = {
    stdout: new PassThrough(),
    onResize(listener) {
      sendSize = listener
    },
    finish: () => closed,
    closed,
    destroy() {
      isDestroyed = true
      endClient()
    },
    lastActivityMs: () => clock.monotonicMs(),
  }
  const process: ContainerProcess = {
    stdout: new PassThrough(),
    exitCode,
    resize(size) {
      sizes.push(size)
      return new Promise((resolve) => resizes.push(resolve))
    },
    kill: () => endCommand(129),
  }
  const ended = runRemoteCommand({
    streams,
    start: async () => process,
    hasTerminal: false,
    reportsExitCode: true,
    clock,
    signal: stop.signal,
  })
  return {
    clock,
    ended,
    sizes,
    resizes,
    stop: () => stop.abort(),
    sendSize: (size: TerminalSize) => sendSize(size),
    isDestroyed: () => isDestroyed,
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('runRemoteCommand', () => {
  it('SYS-26 resizes the terminal one call at a time, and then to the latest size only', async () => {
    const session = startSession()
    await turn()
    for (let columns = 1; columns <= 1_000; columns++) session.sendSize({ columns, rows: 24 })
    await turn()
    expect(session.sizes).toEqual([{ columns: 1, rows: 24 }])
    session.resizes[0]!()
    await turn()
    expect(session.sizes.slice(1)).toEqual([{ columns: 1_000, rows: 24 }])
    session.resizes[1]!()
    await turn()
    expect(session.sizes).toHaveLength(2)
    session.stop()
    await turn()
    await session.clock.advance(3_000)
    await session.ended
  })

  it('SYS-26 disconnects a client that does not read, so that the agent can stop', async () => {
    const session = startSession()
    await turn()
    session.stop()
    await turn()
    await session.clock.advance(2_999)
    expect(session.isDestroyed()).toBe(false)
    await session.clock.advance(1)
    expect(session.isDestroyed()).toBe(true)
    await session.ended
  })
})
