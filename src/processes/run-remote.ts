// A separate process that runs controllers against any API server: `stowage controllers`, `stowage scheduler`,
// `stowage capacity-cleanup`. Several may run; the one that holds the lease works.
import type { Registry } from 'prom-client'
import { parseListen } from '../base/listen-address.ts'
import { type FoundServer, findServer } from '../client/connection/find-server.ts'
import {
  type Host,
  type LeaseTimes,
  type ProcessDeps,
  type Runnable,
  runOnHost,
  startHost,
  type TermDeps,
} from '../runtime/index.ts'

export interface RemoteServerFlags {
  readonly kubeconfig?: string
  /** Address of the server, instead of the one in the kubeconfig. */
  readonly server?: string
  readonly httpEndpoint?: string
}

export interface RemoteFlags extends RemoteServerFlags {
  readonly leaderElection: boolean
}

export interface RemoteWork {
  /** Name of the lease in kube-system, and the user agent of this process. */
  readonly lease: string
  readonly leaseTimes: LeaseTimes
  /** Fields of the log line at the start. */
  readonly about: object
  /** Registers the metrics once; the function it returns creates the controllers of a term. */
  prepare(registry: Registry): (deps: TermDeps) => readonly Runnable[]
}

export async function runRemote(work: RemoteWork, flags: RemoteFlags, deps: ProcessDeps): Promise<void> {
  const host = await startRemoteHost(work.lease, flags, deps)
  try {
    const end = await runOnHost(
      host,
      {
        lease: flags.leaderElection ? { namespace: 'kube-system', name: work.lease, ...work.leaseTimes } : undefined,
        about: work.about,
        createControllers: work.prepare(host.registry),
      },
      deps,
    )
    failIfAbandoned(end)
  } finally {
    await host.close()
    deps.log.info({}, 'stopped')
  }
}

export async function startRemoteHost(
  userAgent: string,
  flags: RemoteServerFlags,
  deps: Pick<ProcessDeps, 'clock' | 'env'>,
): Promise<Host> {
  const found = await findServer(flags.kubeconfig, deps)
  const server: FoundServer = flags.server
    ? { ...found, connection: { ...found.connection, server: flags.server } }
    : found
  const monitoring = flags.httpEndpoint ? parseListen(flags.httpEndpoint, '--http-endpoint') : undefined
  return startHost({ server, userAgent, monitoring }, deps)
}

/** So that the process exits with an error, as after any incomplete stop. */
export function failIfAbandoned(end: 'stopped' | 'abandoned'): void {
  if (end === 'abandoned')
    throw new Error('Stopped before all work in progress had finished; the next start resumes it.')
}
