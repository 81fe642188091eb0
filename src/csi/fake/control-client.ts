// Speaks to a fake driver's process: what it does wrong from now on, and what it has and was asked.
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { FakeCommand, FakeResponse, FakeView } from './control-server.ts'
import type { FakeRule } from './script.ts'

export interface FakeControl {
  inspect(): Promise<FakeView>
  /** Replaces all rules. */
  setRules(rules: readonly FakeRule[]): Promise<void>
  /** Lets every call go on that hangs. */
  release(): Promise<void>
  /** GetCapacity keeps reporting what is free now. */
  freezeCapacity(): Promise<void>
  unfreezeCapacity(): Promise<void>
  /** Kills the driver's process; settles when it is gone. */
  crash(): Promise<void>
}

export function fakeControl(path: string): FakeControl {
  const ask = async (command: FakeCommand): Promise<FakeView | undefined> => {
    const answer = await exchange(path, command)
    if (!answer) throw new Error(`The fake driver at ${path} ended before it answered "${command.do}".`)
    if (!answer.ok) throw new Error(`The fake driver refused "${command.do}": ${answer.error}`)
    return answer.view
  }
  const tell = async (command: FakeCommand) => void (await ask(command))
  return {
    inspect: async () => (await ask({ do: 'inspect' })) as FakeView,
    setRules: (rules) => tell({ do: 'setRules', rules }),
    release: () => tell({ do: 'release' }),
    freezeCapacity: () => tell({ do: 'freezeCapacity' }),
    unfreezeCapacity: () => tell({ do: 'unfreezeCapacity' }),
    crash: async () => void (await exchange(path, { do: 'crash' })),
  }
}

/** One command on a connection of its own; undefined if it ended without an answer. */
function exchange(path: string, command: FakeCommand): Promise<FakeResponse | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(`${JSON.stringify(command)}\n`))
    const lines = createInterface({ input: socket })
    lines.on('error', () => {}) // it repeats the socket's
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
