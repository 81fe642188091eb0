// Runs `stowage console`: reads the kubeconfig, listens, prints the URL, and serves until it is stopped.
import { spawn } from 'node:child_process'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { listenConsole } from '../../../console/index.ts'
import { createProcessDeps, type LogFlags, type ProgramDeps } from '../../command.ts'
import { loadValueFormatter, type OutputFormat } from '../../output/format-output.ts'
import { loadConsoleOptions } from './load-options.ts'

export interface ConsoleFlags extends LogFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly port?: number
  readonly open?: boolean
  readonly output: OutputFormat
}

export async function runConsole(flags: ConsoleFlags, deps: ProgramDeps): Promise<void> {
  const { clock, random, signal } = deps
  const { log, env } = await createProcessDeps(deps, { ...flags, logLevel: flags.logLevel ?? 'warn' })
  const config = await loadClientConfig(flags.kubeconfig, { clock, env, context: flags.context })
  const kubeconfig = config.path
  const listener = await listenConsole({
    port: flags.port,
    portFlag: '--port',
    loadOptions: () => loadConsoleOptions({ ...config, ...flags, clock, random, log, kubeconfig }),
  })
  try {
    const { url } = listener
    const { server } = config.connection
    const formatValue = await loadValueFormatter(flags.output, { isStream: true })
    deps.write(
      formatValue?.({ url, server }) ??
        `The console is ready.\n  console     ${url}\n  API         ${server}\n\nCtrl-C stops it.\n`,
    )
    if (flags.open) openBrowser(url)
    await new Promise((resolve) => {
      if (signal.aborted) resolve(undefined)
      else signal.addEventListener('abort', resolve, { once: true })
    })
  } finally {
    await listener.close()
  }
}

/** A machine without a browser is not an error: the URL is printed. */
function openBrowser(url: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}
