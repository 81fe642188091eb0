// `stowage controllers`: the controllers of `stowage up` in a process of their own, against any Kubernetes API server.
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type FeatureGates, parseFeatureGates } from '../api/feature-gates.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { httpClient } from '../client/index.ts'
import { findServer } from '../sdk/find-server.ts'
import { CONTROLLERS, type ControllerName, runControllers } from './controllers.ts'
import { parseListen, UsageError } from './flags.ts'
import { parseLeaseDuration } from './lease-flag.ts'
import { serveMonitoring } from './monitoring.ts'
import { type PaceFlags, parsePace } from './pace-flags.ts'

export interface RemoteControllersFlags extends PaceFlags {
  readonly kubeconfig?: string
  /** As --controllers gives them, separated by commas. */
  readonly controllers?: string
  readonly leaderElection: boolean
  readonly leaderElectionLeaseDuration?: string
  readonly httpEndpoint?: string
  readonly driverSocket?: readonly string[]
  readonly featureGates?: string
}

export interface RemoteControllersDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

export async function runRemoteControllers(flags: RemoteControllersFlags, deps: RemoteControllersDeps): Promise<void> {
  const { clock, log } = deps
  const names = parseControllers(flags.controllers)
  const gates = gatesOf(flags.featureGates)
  const pace = parsePace(flags)
  const leaseTimes = parseLeaseDuration(flags.leaderElectionLeaseDuration)
  const { connection } = await findServer(flags.kubeconfig, deps).catch((error) => {
    throw new UsageError((error as Error).message)
  })
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const client = httpClient({ connection, clock, userAgent: 'stowage-controllers' })
  const health = { '/healthz': () => undefined }
  const monitoring = flags.httpEndpoint
    ? await serveMonitoring({
        ...parseListen(flags.httpEndpoint, '--http-endpoint'),
        registry,
        metricsPath: '/metrics',
        health,
      })
    : undefined
  try {
    log.info({ server: connection.server, controllers: names }, 'started')
    await runControllers({
      ...deps,
      client,
      registry,
      names,
      gates,
      ...(pace ? { pace } : {}),
      isShared: flags.leaderElection,
      leaseTimes,
      inProcess: [],
      drivers: [...new Set(flags.driverSocket)].map((address) => ({ address })),
    })
  } finally {
    await monitoring?.stop()
    client.close()
    log.info({}, 'stopped')
  }
}

function gatesOf(text: string | undefined): FeatureGates {
  try {
    return parseFeatureGates(text)
  } catch (error) {
    throw new UsageError(`--feature-gates: ${(error as Error).message}`)
  }
}

/** A cluster has a scheduler already; ours is asked for by name. */
const USUAL = CONTROLLERS.filter((name) => name !== 'scheduler')

export function parseControllers(text = USUAL.join(',')): ControllerName[] {
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !CONTROLLERS.some((one) => one === name))
  if (unknown === undefined) return [...new Set(names as ControllerName[])]
  throw new UsageError(`--controllers ${JSON.stringify(unknown)}: expected some of ${CONTROLLERS.join(', ')}`)
}
