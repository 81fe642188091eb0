// Controls a fake driver process from a test: sets its fault rules, resumes hanging calls, freezes its capacity, crashes it, and
// reads its state and recorded calls.
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { FakeCommand, FakeResponse, FakeView } from './control-server.ts'
import type { FakeRule } from './script.ts'

export interface FakeControl {
  inspect(): Promise<FakeView>
  /** Replaces all rules. */
  setRules(rules: readonly FakeRule[]): Promise<void>
  /** Resumes all hanging calls. */
  release(): Promise<void>
  /** Makes GetCapacity return the current values until unfreezeCapacity(). */
  freezeCapacity(): Promise<void>
  unfreezeCapacity(): Promise<void>
  /** Kills the driver process and waits until its connection is closed. */
  crash(): Promise<void>
}

export function createFakeControl(path: string): FakeControl {
  const send = async (command: FakeCommand): Promise<FakeView | undefined> => {
    const response = await exchange(path, command)
    if (!response) throw new Error(`The fake driver at ${path} exited before it responded to "${command.do}".`)
    if (!response.ok) throw new Error(`The fake driver rejected "${command.do}": ${response.error}`)
    return response.view
  }
  const execute = async (command: FakeCommand) => void (await send(command))
  return {
    inspect: async () => (await send({ do: 'inspect' })) as FakeView,
    setRules: (rules) => execute({ do: 'setRules', rules }),
    release: () => execute({ do: 'release' }),
    freezeCapacity: () => execute({ do: 'freezeCapacity' }),
    unfreezeCapacity: () => execute({ do: 'unfreezeCapacity' }),
    crash: async () => void (await exchange(path, { do: 'crash' })),
  }
}

/** Sends one command on a new connection. Resolves with undefined if the connection closes without a response. */
function exchange(path: string, command: FakeCommand): Promise<FakeResponse | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(`${JSON.stringify(command)}\n`))
    const lines = createInterface({ input: socket })
    lines.on('error', () => {}) // readline re-emits the socket's error
    lines.once('line', (line) => {
      socket.destroy()
      resolve(JSON.parse(line) as FakeResponse)
    })
    socket.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve(undefined) : reject(error),
    )
    socket.once('close', () => resolve(undefined))
  })
}
