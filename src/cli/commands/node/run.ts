// Runs `stowage node`: the agent of one node, against any API server, until the process is stopped.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { parseListen } from '../../../base/listen-address.ts'
import type { Logger } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import {
  canWatchVolumes,
  createAgentMetrics,
  NodeNameTakenError,
  reportUsage,
  startNodeAgent,
} from '../../../nodeagent/index.ts'
import {
  ensureServingCertificate,
  joinCluster,
  loadCredentials,
  type NodeCredentials,
  nodeKubeconfigPath,
} from '../../../nodeagent/join/index.ts'
import { startRemoteHost } from '../../../processes/run-remote.ts'
import { whenAborted } from '../../../runtime/stop-signal.ts'
import { stopWithin } from '../../../runtime/stop-within.ts'
import { parseNodeTime } from '../../flags/common.ts'
import { type PodFlags, parsePodFlags } from '../../flags/pod-options.ts'

export interface NodeFlags extends PodFlags {
  readonly kubeconfig?: string
  /** Address of the API server. Overrides the kubeconfig. */
  readonly server?: string
  /** Default: this machine's name. */
  readonly nodeName?: string
  readonly rootDir: string
  readonly driverSocket?: readonly string[]
  /** Labels as `key=value`. */
  readonly label?: readonly string[]
  readonly maxPods: string
  /** How long the node's lease is valid without a renewal. Default: 40 s. */
  readonly nodeLeaseDuration?: string
  /** URL of the server to join. */
  readonly join?: string
  readonly token?: string
  readonly caCertHash?: readonly string[]
  readonly httpEndpoint?: string
  /** Address on which API servers reach the agent for logs and commands. */
  readonly streamEndpoint?: string
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
  const root = resolve(flags.rootDir)
  const credentials = flags.kubeconfig ? undefined : await loadOrJoin(flags, root, deps)
  const nodeName = credentials?.nodeName ?? parseNodeName(flags.nodeName)
  const labels = parseLabels(flags.label ?? [])
  const podsMax = Number(flags.maxPods)
  if (!Number.isInteger(podsMax) || podsMax < 1) {
    throw new UsageError(`--max-pods ${JSON.stringify(flags.maxPods)}: expected a whole number above 0`)
  }
  const leaseMs =
    flags.nodeLeaseDuration === undefined ? undefined : parseNodeTime('--node-lease-duration', flags.nodeLeaseDuration)
  const streamAddress = flags.streamEndpoint ? parseListen(flags.streamEndpoint, '--stream-endpoint') : {}
  const config = credentials
    ? { connection: credentials.connection, namespace: 'default' }
    : await loadClientConfig(flags.kubeconfig, deps)
  const host = await startRemoteHost('stowage-node', flags, deps, { components: ['node'], ownConfig: config })
  const { client, url, registry, monitoringUrl, metrics } = host
  const agentMetrics = createAgentMetrics(registry, clock)
  const { ca } = config.connection
  if (ca === undefined && flags.runCommands)
    log.warn(
      { nodeName },
      'the kubeconfig has no CA, so the API server cannot be authenticated: serving no logs or commands',
    )
  const issueCertificate = (signal: AbortSignal) =>
    ensureServingCertificate({ root, nodeName, ca: ca!, client, clock, log }, signal)
  host.setHealth({ '/healthz': () => undefined })
  try {
    const start = async () => {
      const readsByName = !(await canWatchVolumes({ client, clock, signal }))
      if (readsByName)
        log.info({ nodeName }, 'reading claims, volumes and attachments by name, as the role of a node grants')
      return startNodeAgent({
        client,
        nodeName,
        root,
        driverSockets: (flags.driverSocket ?? []).map((socket) => resolve(socket.replace(/^unix:(\/\/)?/, ''))),
        ...parsePodFlags(flags),
        serverUrl: url,
        streams: ca === undefined ? undefined : { ...streamAddress, ca, issueCertificate },
        labels,
        podsMax,
        leaseMs,
        readsByName,
        version: `v${stowageVersion}`,
        clock,
        random,
        log,
        metrics: agentMetrics,
        operations: metrics.operations,
        signal,
      })
    }
    void credentials?.renew({ client, clock, random, log, signal }).catch(() => {}) // rejects when the signal is aborted
    const process = metrics.operations?.process ?? nodeName
    const usageReports = reportUsage({ client, process, metrics: agentMetrics, clock, log }, signal)
    const agent = start()
    const agentRun = agent
      .then((runningAgent) => {
        deps.onReady({ nodeName, server: url, ...(monitoringUrl ? { metrics: monitoringUrl } : {}) })
        return runningAgent.stopped
      })
      .catch((error) => {
        if (!signal.aborted) throw error // an error after the signal means that the start was interrupted
      })
    await Promise.race([agentRun, whenAborted(signal)])
    await stopWithin({ agent: agentRun, usageReports }, { clock, log })
  } catch (error) {
    if (error instanceof NodeNameTakenError) throw new UsageError(error.message)
    throw error
  } finally {
    await host.close()
    log.info({}, 'stopped; volumes stay mounted')
  }
}

/** Returns the credentials of a node that has joined, now or earlier. A node that has joined ignores --join. */
async function loadOrJoin(flags: NodeFlags, root: string, deps: NodeDeps): Promise<NodeCredentials | undefined> {
  const { join: server, token, caCertHash: pins = [] } = flags
  const earlierCredentials = await loadCredentials(root, deps.clock)
  if (earlierCredentials && flags.nodeName !== undefined && flags.nodeName !== earlierCredentials.nodeName) {
    throw new UsageError(
      `This machine has joined as node "${earlierCredentials.nodeName}", not as --node-name ${JSON.stringify(flags.nodeName)}. ` +
        `Set another --root-dir, or remove ${nodeKubeconfigPath(root)} to join again.`,
    )
  }
  if (earlierCredentials || server === undefined) return earlierCredentials
  if (!/^https:\/\/./.test(server))
    throw new UsageError(`--join ${JSON.stringify(server)}: expected a URL with https://`)
  if (!token || pins.length === 0) {
    throw new UsageError('--join requires --token and --ca-cert-hash, as "stowage token create" prints them.')
  }
  const nodeName = parseNodeName(flags.nodeName)
  const { clock, log, signal } = deps
  await joinCluster({ root, nodeName, server, token, pins, clock, log, signal })
  return loadCredentials(root, clock)
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
