// Serves the control socket of the fake driver process: one JSON command and one JSON response per line. control-client.ts is
// the client.
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { removeStaleSocket } from '../remove-stale-socket.ts'
import type { FakeDriver } from './fake-driver.ts'
import type { FakeCall, Overlap } from './record.ts'
import type { FakeRule } from './script.ts'
import type { FakeState } from './state.ts'

export type FakeCommand =
  | { readonly do: 'inspect' }
  | { readonly do: 'setRules'; readonly rules: readonly FakeRule[] }
  | { readonly do: 'release' }
  | { readonly do: 'freezeCapacity' }
  | { readonly do: 'unfreezeCapacity' }
  | { readonly do: 'crash' }

/** The response to `inspect`. */
export interface FakeView {
  readonly state: FakeState
  readonly calls: readonly FakeCall[]
  readonly overlaps: readonly Overlap[]
  /** Number of calls that hang because of a rule. */
  readonly hangingCount: number
}

export type FakeResponse =
  | { readonly ok: true; readonly view?: FakeView }
  | { readonly ok: false; readonly error: string }

export async function serveControl(path: string, fake: FakeDriver, crash: () => void): Promise<{ stop(): void }> {
  await removeStaleSocket(path)
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    const lines = createInterface({ input: socket })
    lines.on('error', () => {}) // readline re-emits the socket's error
    lines.on('line', (line) => {
      if (socket.writable) socket.write(`${JSON.stringify(respond(line))}\n`)
    })
  })
  const respond = (line: string): FakeResponse => {
    try {
      return execute(JSON.parse(line) as FakeCommand, fake, crash)
    } catch (error) {
      return { ok: false, error: (error as Error).message }
    }
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  return { stop: () => void server.close() }
}

function execute(command: FakeCommand, fake: FakeDriver, crash: () => void): FakeResponse {
  switch (command.do) {
    case 'inspect': {
      const { calls, overlaps } = fake.record
      return { ok: true, view: { state: fake.state, calls, overlaps, hangingCount: fake.script.hangingCount } }
    }
    case 'setRules':
      fake.script.setRules(command.rules)
      return { ok: true }
    case 'release':
      fake.script.release()
      return { ok: true }
    case 'freezeCapacity':
      fake.freezeCapacity()
      return { ok: true }
    case 'unfreezeCapacity':
      fake.unfreezeCapacity()
      return { ok: true }
    case 'crash':
      crash()
      return { ok: true }
    default:
      return { ok: false, error: `unknown command ${JSON.stringify((command as { do: unknown }).do)}` }
  }
}
