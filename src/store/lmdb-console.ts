// Keeps stack traces of the lmdb package off stderr. The package prints every failed commit with console.error before it
// rejects the commit's promise; lmdb.ts reports the same error with its file and reason.

let isInstalled = false

/** Replaces console.error once per process. Other messages are still printed. */
export function silenceLmdbErrors(): void {
  if (isInstalled) return
  isInstalled = true
  const printError = console.error
  console.error = (...args: unknown[]) => {
    if (!isLmdbError(args[0])) printError.apply(console, args)
  }
}

const isLmdbError = (value: unknown): boolean =>
  value instanceof Error && /[/\\]node_modules[/\\]lmdb[/\\]/.test(value.stack ?? '')
