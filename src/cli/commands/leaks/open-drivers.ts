// Connects to the driver processes that a request names, or to those found on this machine.
import type { Clock } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type CsiConnection, connectDriver } from '../../../csi/index.ts'
import { type DriverProcess, identifyProcess } from './inventory.ts'
import { describeSocket, findSockets } from './sockets.ts'

export interface DriverSelection {
  /** Only processes of this driver. Default: all drivers. */
  readonly driver?: string
  /** The sockets to connect to. Default: those found on this machine. */
  readonly addresses: readonly string[]
  /** The data directory of `stowage up`, which is searched for sockets. */
  readonly dataDir: string
}

export interface DriverConnections {
  readonly processes: readonly DriverProcess[]
  /** Why found sockets were skipped. */
  readonly problems: readonly string[]
  close(): void
}

/** Bounds the wait for a process that listens on the socket but does not respond. */
const IDENTIFY_TIMEOUT_MS = 10_000

/** Throws UsageError if no driver responds, or if one that the user named does not. */
export async function openDrivers(
  { driver, addresses, dataDir }: DriverSelection,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<DriverConnections> {
  const places =
    addresses.length > 0
      ? await Promise.all(addresses.map((address) => describeSocket(address)))
      : await findSockets(dataDir)
  const connections: CsiConnection[] = []
  const problems: string[] = []
  const close = () => {
    for (const connection of connections) connection.close()
  }
  try {
    const identified = await Promise.all(
      places.map(async (place) => {
        const connection = connectDriver({
          address: place.address,
          clock,
          log: silentLog,
          timeoutMs: IDENTIFY_TIMEOUT_MS,
        })
        connections.push(connection)
        try {
          return [await identifyProcess({ ...place, driver: connection }, { timeoutMs: IDENTIFY_TIMEOUT_MS, signal })]
        } catch (error) {
          if (addresses.length > 0) throw notRespondingError(place.address, error as Error)
          problems.push(`the driver at ${place.address} was not queried: ${(error as Error).message}`)
          return []
        }
      }),
    )
    const all = identified.flat()
    const processes = all.filter(({ facts }) => driver === undefined || facts.name === driver)
    if (processes.length === 0) throw noDriver({ driver, addresses, dataDir }, all, problems)
    return { processes, problems, close }
  } catch (error) {
    close()
    throw error
  }
}

const notRespondingError = (address: string, { message }: Error): UsageError =>
  new UsageError(
    message.includes(address) ? message : `The driver at ${address} does not respond as a CSI driver: ${message}`,
  )

function noDriver(
  { driver, addresses, dataDir }: DriverSelection,
  found: readonly DriverProcess[],
  problems: readonly string[],
): UsageError {
  const names = [...new Set(found.map(({ facts }) => facts.name))].sort()
  const requestedDriver = driver === undefined ? 'a CSI driver' : `the driver ${driver}`
  const reason =
    addresses.length > 0
      ? `The sockets are those of ${names.join(', ')}, not of ${driver}.`
      : `No socket in ${dataDir} or in the directory of a kubelet responds as ${requestedDriver}` +
        `${names.length > 0 ? `, but there are sockets of ${names.join(', ')}` : ''}.`
  return new UsageError(
    `${[reason, ...problems].join(' ')} Set --csi-address to the socket of the driver's controller service.`,
  )
}
