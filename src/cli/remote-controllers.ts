// `stowage controllers`: the controllers of `stowage up` in a process of their own, against any Kubernetes API server.
import { type FeatureGates, parseFeatureGates } from '../api/feature-gates.ts'
import { UsageError } from '../base/usage-error.ts'
import { CONTROLLERS, type ControllerName, runControllers } from '../processes/controllers.ts'
import { reachServer } from '../processes/remote-server.ts'
import type { RemoteWorkDeps, RemoteWorkFlags } from '../processes/remote-work.ts'
import { type LeaseFlags, parseLeaseDuration } from './lease-flag.ts'
import { type PaceFlags, parsePace } from './pace-flags.ts'

export interface RemoteControllersFlags extends RemoteWorkFlags, LeaseFlags, PaceFlags {
  /** As --controllers gives them, separated by commas. */
  readonly controllers?: string
  readonly driverSocket?: readonly string[]
  readonly featureGates?: string
}

export async function runRemoteControllers(flags: RemoteControllersFlags, deps: RemoteWorkDeps): Promise<void> {
  const { log } = deps
  const names = parseControllers(flags.controllers)
  const gates = gatesOf(flags.featureGates)
  const pace = parsePace(flags)
  const leaseTimes = parseLeaseDuration(flags.leaderElectionLeaseDuration)
  const server = await reachServer('stowage-controllers', flags, deps)
  const { client, registry, metrics } = server
  try {
    log.info({ server: server.url, controllers: names }, 'started')
    await runControllers({
      ...deps,
      client,
      registry,
      metrics,
      names,
      gates,
      ...(pace ? { pace } : {}),
      isShared: flags.leaderElection,
      leaseTimes,
      inProcess: [],
      drivers: [...new Set(flags.driverSocket)].map((address) => ({ address })),
    })
  } finally {
    await server.close()
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
