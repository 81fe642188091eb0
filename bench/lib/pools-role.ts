// A CSI driver for local storage on many nodes, in a separate process: one pool, in memory, per node and value of the class
// parameter `pool`. Every call takes the same short time, regardless of the number of pools and volumes.
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { CsiError } from '../../src/csi/index.ts'
import { serveDriver } from '../../src/csi/serve.ts'

export interface PoolsJob {
  readonly socket: string
  readonly name: string
  /** The topology key whose value is a pool's node. */
  readonly topologyKey: string
  readonly poolBytes: number
}

type Segments = Readonly<Record<string, string>>

/** Serves until the process ends. */
export async function servePools({ socket, name, topologyKey, poolBytes }: PoolsJob): Promise<void> {
  const usedBytes = new Map<string, number>()
  const volumes = new Map<string, { readonly pool: string; readonly bytes: number; readonly segments: Segments }>()
  const poolOf = (segments: Segments, parameters: Readonly<Record<string, string>>) =>
    `${segments[topologyKey] ?? 'anywhere'} ${parameters.pool ?? ''}`
  const freeBytes = (pool: string) => poolBytes - (usedBytes.get(pool) ?? 0)
  const capability = <T>(types: readonly T[], caseName: string) => ({
    capabilities: types.map((type) => ({ type: { case: caseName, value: { type } } })) as never,
  })
  await serveDriver({
    endpoint: `unix://${socket}`,
    clock: systemClock(),
    log: silentLog,
    identity: {
      getPluginInfo: async () => ({ name, vendorVersion: '1' }),
      getPluginCapabilities: async () => capability([CONTROLLER_SERVICE, ACCESSIBILITY], 'service'),
      probe: async () => ({ ready: true }),
    } as never,
    controller: {
      controllerGetCapabilities: async () => capability([CREATE_DELETE, GET_CAPACITY], 'rpc'),
      getCapacity: async ({ accessibleTopology, parameters }) => ({
        availableCapacity: BigInt(freeBytes(poolOf(accessibleTopology?.segments ?? {}, parameters))),
      }),
      createVolume: async (request) => {
        const existingVolume = volumes.get(request.name)
        const segments = existingVolume?.segments ?? request.accessibilityRequirements?.preferred[0]?.segments ?? {}
        const pool = existingVolume?.pool ?? poolOf(segments, request.parameters)
        const bytes = existingVolume?.bytes ?? Number(request.capacityRange?.requiredBytes ?? 0n)
        if (!existingVolume) {
          if (freeBytes(pool) < bytes) throw new CsiError('RESOURCE_EXHAUSTED', `${pool} is full`)
          usedBytes.set(pool, (usedBytes.get(pool) ?? 0) + bytes)
          volumes.set(request.name, { pool, bytes, segments })
        }
        const accessibleTopology = Object.keys(segments).length > 0 ? [{ segments: { ...segments } }] : []
        return { volume: { volumeId: request.name, capacityBytes: BigInt(bytes), accessibleTopology } }
      },
      deleteVolume: async ({ volumeId }) => {
        const existingVolume = volumes.get(volumeId)
        if (existingVolume)
          usedBytes.set(existingVolume.pool, (usedBytes.get(existingVolume.pool) ?? 0) - existingVolume.bytes)
        volumes.delete(volumeId)
        return {}
      },
    },
    node: {
      nodeGetCapabilities: async () => ({ capabilities: [] }),
      nodeGetInfo: async () => ({ nodeId: 'bench' }),
    },
  })
}

/** Enum values of the CSI protocol. */
const [CONTROLLER_SERVICE, ACCESSIBILITY] = [1, 2]
const [CREATE_DELETE, GET_CAPACITY] = [1, 4]
