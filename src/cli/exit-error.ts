// The error that ends a command with an exit code after it has printed its result.

export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number
  constructor(exitCode: number) {
    super(`exit code ${exitCode}`)
    this.exitCode = exitCode
  }
}
