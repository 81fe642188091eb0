// Runs controllers in a separate process against any API server, for `stowage controllers`, `stowage scheduler` and `stowage
// capacity-cleanup`. `stowage node` uses the same connection and monitoring (startRemoteHost).
import type { Registry } from 'prom-client'
import type { Component } from '../apiserver/rbac/component-rules.ts'
import { parseListen } from '../base/listen-address.ts'
import { type ClientConfig, loadClientConfig } from '../client/connection/client-config.ts'
import {
  type Host,
  type LeaseTimes,
  type ProcessDeps,
  type Runnable,
  runOnHost,
  startHost,
  type TermDeps,
} from '../runtime/index.ts'
import { createFeatureLookup } from './feature-lookup.ts'

export interface RemoteServerFlags {
  readonly kubeconfig?: string
  /** Address of the API server. Overrides the address in the kubeconfig. */
  readonly server?: string
  readonly httpEndpoint?: string
}

export interface RemoteFlags extends RemoteServerFlags {
  readonly leaderElection: boolean
}

export interface RemoteWork {
  readonly userAgent: string
  /** The components that the process runs. */
  readonly components: readonly Component[]
  /** Names of the leases in kube-system. The leader holds all of them. */
  readonly leases: readonly [string, ...string[]]
  readonly leaseTimes: LeaseTimes
  /** Fields of the log entry at startup. */
  readonly logFields: object
  /** Registers the metrics and returns a function that creates the controllers of a leadership term. */
  prepare(registry: Registry): (deps: TermDeps) => readonly Runnable[]
}

export async function runRemote(work: RemoteWork, flags: RemoteFlags, deps: ProcessDeps): Promise<void> {
  const host = await startRemoteHost(work.userAgent, flags, deps, { components: work.components })
  const [name, ...additionalNames] = work.leases
  try {
    const outcome = await runOnHost(
      host,
      {
        lease: flags.leaderElection
          ? { namespace: 'kube-system', name, additionalNames, ...work.leaseTimes }
          : undefined,
        logFields: work.logFields,
        createControllers: work.prepare(host.registry),
      },
      deps,
    )
    failIfAbandoned(outcome)
  } finally {
    await host.close()
    deps.log.info({}, 'stopped')
  }
}

export interface RemoteHostOptions {
  /** The components that the process runs. A log entry about a missing permission names their feature that needs it. */
  readonly components: readonly Component[]
  /** Default: the configuration of the flags. */
  readonly ownConfig?: ClientConfig
}

export async function startRemoteHost(
  userAgent: string,
  flags: RemoteServerFlags,
  deps: Pick<ProcessDeps, 'clock' | 'env' | 'random' | 'log'>,
  { components, ownConfig }: RemoteHostOptions,
): Promise<Host> {
  const config = ownConfig ?? (await loadClientConfig(flags.kubeconfig, deps))
  const server: ClientConfig = flags.server
    ? { ...config, connection: { ...config.connection, server: flags.server } }
    : config
  const monitoring = flags.httpEndpoint ? parseListen(flags.httpEndpoint, '--http-endpoint') : undefined
  return startHost({ server, userAgent, monitoring, featureOf: createFeatureLookup(components) }, deps)
}

/** Throws if work was abandoned, so that the process exits with an error code. */
export function failIfAbandoned(outcome: 'stopped' | 'abandoned'): void {
  if (outcome === 'abandoned')
    throw new Error('Stopped before all work in progress had finished; the next start resumes it.')
}
