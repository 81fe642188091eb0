// Runs `stowage node`: the agent of one node, with any API server, until the process is stopped.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { canWatchVolumes, NodeNameTakenError, startNodeAgent } from '../../../nodeagent/index.ts'
import { startRemoteHost } from '../../../processes/run-remote.ts'
import { whenAborted } from '../../../runtime/stop-signal.ts'
import { stopWithin } from '../../../runtime/stop-within.ts'

export interface NodeFlags {
  readonly kubeconfig?: string
  /** Address of the API server. Overrides the kubeconfig. */
  readonly server?: string
  /** Default: the name of this machine. */
  readonly nodeName?: string
  readonly rootDir: string
  readonly driverSocket?: readonly string[]
  readonly runCommands: boolean
  /** Labels as `key=value`. */
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
  const nodeName = parseNodeName(flags.nodeName)
  const labels = parseLabels(flags.label ?? [])
  const podsMax = Number(flags.maxPods)
  if (!Number.isInteger(podsMax) || podsMax < 1) {
    throw new UsageError(`--max-pods ${JSON.stringify(flags.maxPods)}: expected a whole number above 0`)
  }
  const host = await startRemoteHost('stowage-node', flags, deps)
  const { client, url, registry, monitoringUrl } = host
  host.setHealth({ '/healthz': () => undefined })
  try {
    const start = async () => {
      const readsByName = !(await canWatchVolumes({ client, clock, signal }))
      if (readsByName)
        log.info({ nodeName }, 'reading claims, volumes and attachments by name, as the role of a node grants')
      return startNodeAgent({
        client,
        nodeName,
        root: resolve(flags.rootDir),
        driverSockets: (flags.driverSocket ?? []).map((socket) => resolve(socket.replace(/^unix:(\/\/)?/, ''))),
        runCommands: flags.runCommands,
        serverUrl: url,
        labels,
        podsMax,
        readsByName,
        version: `v${stowageVersion}`,
        clock,
        random,
        log,
        registry,
        signal,
      })
    }
    const agent = start()
    const stopped = agent
      .then((runningAgent) => {
        deps.onReady({ nodeName, server: url, ...(monitoringUrl ? { metrics: monitoringUrl } : {}) })
        return runningAgent.stopped
      })
      .catch((error) => {
        if (!signal.aborted) throw error // an error after the signal means that the start was interrupted
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

function parseNodeName(text: string | undefined): string {
  const name = text ?? hostname().toLowerCase()
  const [problem] = dns1123SubdomainProblems(name)
  if (problem === undefined) return name
  throw new UsageError(`--node-name ${JSON.stringify(name)}: ${problem}`)
}

function parseLabels(text: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    text.map((label) => {
      const separator = label.indexOf('=')
      if (separator > 0) return [label.slice(0, separator), label.slice(separator + 1)]
      throw new UsageError(`--label ${JSON.stringify(label)}: expected key=value`)
    }),
  )
}
