// Asks the user to confirm a deletion or another change on the terminal.
import { createInterface } from 'node:readline/promises'
import { UsageError } from '../base/usage-error.ts'

export interface ConfirmMessages {
  /** The error if there is no terminal to ask on. */
  readonly withoutTerminal: string
  /** The error if the user does not confirm. */
  readonly declined: string
}

/** Throws UsageError unless the user types yes on the terminal. */
export async function confirm({ withoutTerminal, declined }: ConfirmMessages): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) throw new UsageError(withoutTerminal)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question('Type yes to continue: ').finally(() => terminal.close())
  if (answer.trim() !== 'yes') throw new UsageError(declined)
}
