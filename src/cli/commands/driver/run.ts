// Runs `stowage driver`: serves the local CSI driver on a socket until the process is stopped.
import { resolve } from 'node:path'
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock } from '../../../base/clock.ts'
import { parseListen } from '../../../base/listen-address.ts'
import type { Logger } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { parseSocketPath } from '../../../csi/socket-path.ts'
import { type RunningDriver, startDriver } from '../../../driver/index.ts'
import { parseMaxVolumes, parsePoolSize } from '../../flags/common.ts'

export interface DriverFlags {
  readonly endpoint: string
  readonly nodeId: string
  readonly pool: string
  readonly poolSize?: string
  readonly backend: 'auto' | 'loop' | 'directory'
  readonly topologyKey: string
  readonly workloadCgroup: readonly string[]
  readonly targetRoot?: readonly string[]
  readonly maxVolumesPerNode?: string
  readonly metricsAddress?: string
}

export interface DriverDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  onReady(driver: RunningDriver): void
}

/** Topology keys and values that both CSI and node labels allow. */
const TOPOLOGY_VALUE = /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
const TOPOLOGY_KEY = /^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?\/)?(?=[^/]{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/

export async function runDriver(flags: DriverFlags, { clock, log, signal, onReady }: DriverDeps): Promise<void> {
  const poolBytes = parsePoolSize(flags.poolSize)
  const maxVolumesPerNode = parseMaxVolumes(flags.maxVolumesPerNode)
  checkEndpoint(flags.endpoint)
  if (!TOPOLOGY_VALUE.test(flags.nodeId)) {
    throw new UsageError(
      `--node-id ${JSON.stringify(flags.nodeId)}: expected the node's name, at most 63 letters, digits, '-', '_' and '.'`,
    )
  }
  if (!TOPOLOGY_KEY.test(flags.topologyKey)) {
    throw new UsageError(
      `--topology-key ${JSON.stringify(flags.topologyKey)}: expected a label key, such as example.com/node`,
    )
  }
  const driver = await startDriver({
    endpoint: flags.endpoint,
    nodeId: flags.nodeId,
    pool: resolve(flags.pool),
    poolBytes,
    backend: flags.backend,
    topologyKey: flags.topologyKey,
    workloadCgroups: flags.workloadCgroup,
    targetRoots: (flags.targetRoot ?? []).map((directory) => resolve(directory)),
    maxVolumesPerNode,
    metricsAddress:
      flags.metricsAddress === undefined ? undefined : parseListen(flags.metricsAddress, '--metrics-address'),
    version: stowageVersion,
    clock,
    log,
  })
  for (const text of driver.limitations) log.warn({ backend: driver.backend }, text)
  onReady(driver)
  if (!signal.aborted) await new Promise((stop) => signal.addEventListener('abort', stop, { once: true }))
  log.info({}, 'stopping; waiting for calls in progress')
  await driver.stop()
}

function checkEndpoint(endpoint: string): void {
  try {
    parseSocketPath(endpoint)
  } catch (error) {
    throw new UsageError(`--endpoint ${(error as Error).message}`)
  }
}
