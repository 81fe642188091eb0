// The whole of a provisioner's program: flags, the way to the server, one leader among several, metrics, until it is
// told to stop. What a term of work is made of is work-term.ts; what is done for one claim, ../controllers/provisioning.
import { collectDefaultMetrics, Registry } from 'prom-client'
import { systemClock, systemRandom } from '../base/clock.ts'
import { parseListen } from '../base/listen-address.ts'
import { processIdentity } from '../base/process-identity.ts'
import { UsageError } from '../base/usage-error.ts'
import { findServer } from '../client/find-server.ts'
import { httpClient } from '../client/index.ts'
import { createProvisioningMetrics } from '../controllers/provisioning/index.ts'
import type { ProvisionerPlugin } from '../controllers/provisioning/plugin/contract.ts'
import { provisionerOf } from '../controllers/provisioning/plugin.ts'
import { createClientMetrics, createLeaderElection, type LeaderElection } from '../runtime/index.ts'
import { createLog } from '../runtime/log.ts'
import { serveMonitoring } from '../runtime/monitoring.ts'
import { withinStopLimit } from '../runtime/stop-limit.ts'
import { untilToldToStop } from '../runtime/stop-signal.ts'
import { helpText, type RunOptions, readSettings, type Settings } from './settings.ts'
import { workTerm } from './work-term.ts'

/**
 * Runs until the process is told to stop, and settles when the last volume in work is done, or a stop takes too long.
 * What keeps it from running is said on standard error, and becomes the process's exit code: 2 for wrong flags, 1 for
 * the rest.
 */
export async function runProvisioner(plugin: ProvisionerPlugin<any, any>, options: RunOptions = {}): Promise<void> {
  const stop = untilToldToStop(options.signal)
  try {
    const settings = readSettings(options, options.args ?? process.argv.slice(2))
    if ('help' in settings) process.stdout.write(helpText(plugin.name))
    else if ((await operate(plugin, settings, options, stop.signal)) === 'abandoned') {
      process.exitCode = 1
      if (!options.signal) process.exit() // what was not waited for would keep it alive
    }
  } catch (error) {
    process.stderr.write(`${plugin.name}: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  } finally {
    stop.forget()
  }
}

const STOP_TIMEOUT_MS = 30_000

async function operate(
  plugin: ProvisionerPlugin<any, any>,
  settings: Settings,
  { log: given, env = process.env }: RunOptions,
  signal: AbortSignal,
): Promise<'ended' | 'abandoned'> {
  const { name } = plugin
  const stopTimeoutMs = settings.stopTimeoutMs ?? STOP_TIMEOUT_MS
  const clock = systemClock()
  const random = systemRandom()
  const log = given ?? createLog(settings.logLevel ?? 'info')
  const provisioner = provisionerOf(plugin, {
    clock,
    ...(settings.timeoutMs ? { callTimeoutMs: settings.timeoutMs } : {}),
  })
  const { connection, namespace } = await findServer(settings.kubeconfig, { clock, env })
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const provisioningMetrics = createProvisioningMetrics(registry)
  const client = httpClient({ connection, clock, userAgent: `stowage-provisioner ${name}`, observer: metrics.requests })
  let isWorking = false
  let election: LeaderElection | undefined
  // A stand-by is ready too: it is there to take over.
  const whyNotReady = () => (isWorking || election?.holder ? undefined : 'the server has not been reached yet')
  const monitoring =
    settings.httpEndpoint &&
    (await serveMonitoring({
      ...parseListen(settings.httpEndpoint, '--http-endpoint'),
      registry,
      metricsPath: '/metrics',
      health: { '/healthz': () => undefined, '/readyz': whyNotReady },
    }))

  async function work(term: AbortSignal): Promise<void> {
    const { retryIntervalStartMs, retryIntervalMaxMs, volumeNamePrefix, workerThreads: workers } = settings
    const options = { workers, retryIntervalStartMs, retryIntervalMaxMs, volumeNamePrefix }
    const onReady = () => {
      isWorking = true
      log.info({ provisioner: name }, 'working')
    }
    try {
      await workTerm(
        { client, clock, random, log, metrics, provisioningMetrics, provisioner, options, election, onReady },
        term,
      )
    } finally {
      isWorking = false
    }
  }

  try {
    log.info(
      { provisioner: name, server: connection.server, ...(monitoring ? { monitoring: monitoring.url } : {}) },
      'started',
    )
    if (settings.leaderElection !== false) {
      election = createLeaderElection({
        ...{ client, clock, random, log },
        namespace: settings.leaderElectionNamespace ?? namespace,
        name: name.replaceAll('/', '-'),
        identity: processIdentity(random),
        onChange: (isLeader) => metrics.leadership(name, isLeader),
      })
    }
    const working = election ? election.run(work, signal) : work(signal)
    const end = await withinStopLimit(working, { signal, clock, limitMs: stopTimeoutMs })
    if (end === 'abandoned') {
      const afterSeconds = stopTimeoutMs / 1_000
      log.warn({ provisioner: name, afterSeconds }, 'not waited for any longer; the next start finds what was made')
    }
    return end
  } finally {
    if (monitoring) await monitoring.stop()
    client.close()
    log.info({ provisioner: name }, 'stopped')
  }
}
