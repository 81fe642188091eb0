// Runs a provisioner as a program: parses flags, connects to the API server, and hosts the controllers that provision, change
// and delete its volumes.
import { hostname } from 'node:os'
import { systemClock, systemRandom } from '../base/clock.ts'
import { keepAliveUntil } from '../base/keep-alive.ts'
import { parseListen } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import { loadClientConfig } from '../client/connection/client-config.ts'
import { createPluginChanges } from '../controllers/plugin-changes/index.ts'
import { createProvisioningControllers, createProvisioningMetrics } from '../controllers/provisioning/index.ts'
import type { AnyProvisionerPlugin } from '../controllers/provisioning/plugin/contract.ts'
import { provisionerOf } from '../controllers/provisioning/plugin.ts'
import { createEventRecorder, type ProcessDeps, runOnHost, startHost, withRecorders } from '../runtime/index.ts'
import { createLog } from '../runtime/log/log.ts'
import { createStopSignal } from '../runtime/stop-signal.ts'
import { formatHelp, type RunOptions, readSettings, type Settings } from './settings.ts'

/**
 * Runs until `options.signal` is aborted, by default on SIGINT or SIGTERM, and settles when all running calls have returned
 * or the stop timeout has passed. Prints errors to standard error and sets the exit code: 2 for a UsageError, such as an
 * invalid flag, and 1 for other errors and for calls that are still running at the stop timeout.
 */
export async function runProvisioner(plugin: AnyProvisionerPlugin, options: RunOptions = {}): Promise<void> {
  const { signal, dispose } = options.signal ? { signal: options.signal, dispose: () => {} } : createStopSignal()
  try {
    const settings = readSettings(options, options.args ?? process.argv.slice(2))
    if ('help' in settings) process.stdout.write(formatHelp(plugin.name))
    else if ((await keepAliveUntil(runOnServer(plugin, settings, options, signal))) === 'abandoned') {
      process.exitCode = 1
      if (!options.signal) process.exit() // calls that ignore their signal keep the process alive
    }
  } catch (error) {
    process.stderr.write(`${plugin.name}: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  } finally {
    dispose()
  }
}

const STOP_TIMEOUT_MS = 30_000

async function runOnServer(
  plugin: AnyProvisionerPlugin,
  settings: Settings,
  { log: customLog, env = process.env }: RunOptions,
  signal: AbortSignal,
): Promise<'stopped' | 'abandoned'> {
  const { name } = plugin
  const log = customLog ?? createLog(settings.logLevel ?? 'info')
  const deps: ProcessDeps = { clock: systemClock(), random: systemRandom(), log, signal, env }
  const callTimeoutMs = settings.timeoutMs || undefined
  const provisioner = provisionerOf(plugin, { clock: deps.clock, callTimeoutMs })
  const server = await loadClientConfig(settings.kubeconfig, deps)
  const monitoring = settings.httpEndpoint ? parseListen(settings.httpEndpoint, '--http-endpoint') : undefined
  const host = await startHost({ server, userAgent: `stowage-provisioner ${name}`, monitoring }, deps)
  const provisioningMetrics = createProvisioningMetrics(host.registry)
  const { retryIntervalStartMs, retryIntervalMaxMs, volumeNamePrefix, workerThreads: workers } = settings
  const changeOptions = { workers, retryIntervalStartMs, retryIntervalMaxMs }
  const options = { ...changeOptions, volumeNamePrefix }
  try {
    return await runOnHost(
      host,
      {
        lease:
          settings.leaderElection === false
            ? undefined
            : {
                namespace: settings.leaderElectionNamespace ?? (env.NAMESPACE || host.namespace),
                name: name.replaceAll('/', '-'),
                metricName: name,
              },
        stopTimeoutMs: settings.stopTimeoutMs ?? STOP_TIMEOUT_MS,
        logFields: { provisioner: name },
        createControllers: (term) => {
          const events = createEventRecorder({ ...term, component: name, instance: hostname() })
          const controllers = createProvisioningControllers({
            ...term,
            provisioner,
            provisioningMetrics,
            options,
            events,
          })
          const changes = createPluginChanges({ ...term, plugin, callTimeoutMs, options: changeOptions, events })
          return [withRecorders([controllers, changes], [events])]
        },
        onSynced: () => log.info({ provisioner: name }, 'working'),
      },
      deps,
    )
  } finally {
    await host.close()
    log.info({ provisioner: name }, 'stopped')
  }
}
