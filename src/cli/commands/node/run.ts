// Runs `stowage node`: the agent of one node, against any API server, until it is stopped.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { NodeNameTakenError, startNodeAgent } from '../../../nodeagent/index.ts'
import { startRemoteHost } from '../../../processes/run-remote.ts'
import { whenAborted } from '../../../runtime/stop-signal.ts'
import { stopWithin } from '../../../runtime/stop-within.ts'

export interface NodeFlags {
  readonly kubeconfig?: string
  /** Address of the API server, in place of the one in the kubeconfig. */
  readonly server?: string
  /** Default: the name of this machine. */
  readonly nodeName?: string
  readonly rootDir: string
  readonly driverSocket?: readonly string[]
  readonly runCommands: boolean
  /** `key=value`, repeated. */
  readonly label?: readonly string[]
  readonly maxPods: string
  readonly httpEndpoint?: string
}

export interface NodeDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
  onReady(ready: { readonly nodeName: string; readonly server: string; readonly metrics?: string }): void
}

export async function runNode(flags: NodeFlags, deps: NodeDeps): Promise<void> {
  const { clock, random, log, signal } = deps
  const nodeName = nodeNameOf(flags.nodeName)
  const labels = labelsOf(flags.label ?? [])
  const podsMax = Number(flags.maxPods)
  if (!Number.isInteger(podsMax) || podsMax < 1) {
    throw new UsageError(`--max-pods ${JSON.stringify(flags.maxPods)}: expected a whole number above 0`)
  }
  const host = await startRemoteHost('stowage-node', flags, deps)
  const { client, url, registry, monitoringUrl } = host
  host.setHealth({ '/healthz': () => undefined })
  try {
    const agent = startNodeAgent({
      client,
      nodeName,
      root: resolve(flags.rootDir),
      driverSockets: (flags.driverSocket ?? []).map((socket) => resolve(socket.replace(/^unix:(\/\/)?/, ''))),
      runCommands: flags.runCommands,
      labels,
      podsMax,
      version: `v${stowageVersion}`,
      clock,
      random,
      log,
      registry,
      signal,
    })
    const stopped = agent
      .then((running) => {
        deps.onReady({ nodeName, server: url, ...(monitoringUrl ? { metrics: monitoringUrl } : {}) })
        return running.stopped
      })
      .catch((error) => {
        if (!signal.aborted) throw error // else stopped while starting
      })
    await Promise.race([stopped, whenAborted(signal)])
    await stopWithin({ agent: stopped }, { clock, log })
  } catch (error) {
    if (error instanceof NodeNameTakenError) throw new UsageError(error.message)
    throw error
  } finally {
    await host.close()
    log.info({}, 'stopped; volumes stay mounted')
  }
}

function nodeNameOf(given: string | undefined): string {
  const name = given ?? hostname().toLowerCase()
  const [problem] = dns1123SubdomainProblems(name)
  if (problem === undefined) return name
  throw new UsageError(`--node-name ${JSON.stringify(name)}: ${problem}`)
}

function labelsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((label) => {
      const at = label.indexOf('=')
      if (at > 0) return [label.slice(0, at), label.slice(at + 1)]
      throw new UsageError(`--label ${JSON.stringify(label)}: expected key=value`)
    }),
  )
}
