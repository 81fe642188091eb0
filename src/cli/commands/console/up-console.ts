// Runs the console in the `stowage up` process. It listens before the server starts, so that the command fails early if the
// port is in use. When the server is ready, the console reads the server's kubeconfig and loads the rest of its code on the
// first request, or after LOAD_DELAY_MS without one.
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import { type ConsoleListener, listenConsole } from '../../../console/index.ts'

/** Without a request, the console is loaded this long after the server is ready, so that it has a history when it is opened. */
const LOAD_DELAY_MS = 30_000

export interface UpConsoleOptions {
  readonly port: number | undefined
  readonly dataDir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface UpConsole extends ConsoleListener {
  /** Requests of the page wait for this call. */
  setReady(server: { readonly kubeconfig: string }): void
}

export async function listenUpConsole({ port, dataDir, clock, random, log }: UpConsoleOptions): Promise<UpConsole> {
  let resolveReady: UpConsole['setReady'] = () => {}
  const ready = new Promise<{ readonly kubeconfig: string }>((resolve) => {
    resolveReady = resolve
  })
  const listener = await listenConsole({
    port,
    portFlag: '--console-port',
    async loadOptions() {
      const { kubeconfig } = await ready
      const { loadConsoleOptions } = await import('./load-options.ts')
      const { kubeconfigConnection } = await import('../../../client/index.ts')
      const connection = await kubeconfigConnection({ path: kubeconfig, clock })
      const { namespace } = connection
      return loadConsoleOptions({ connection, namespace, kubeconfig, dataDir, clock, random, log })
    },
  })
  let cancelLoad = () => {}
  return {
    ...listener,
    setReady(server) {
      resolveReady(server)
      cancelLoad = clock.after(LOAD_DELAY_MS, listener.load)
    },
    close() {
      cancelLoad()
      return listener.close()
    },
  }
}
