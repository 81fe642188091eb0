// Finds the IP address that this server publishes to clients.
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { ListenAddress } from '../../base/listen-address.ts'

/** Returns the IP address of the host, or that of the machine if the server listens on all addresses. */
export async function findServerEndpoint({ host, port }: ListenAddress): Promise<{ address: string; port: number }> {
  if (host === '0.0.0.0' || host === '::') {
    const { readMachineInfo } = await import('../../nodeagent/node/machine-info.ts')
    return { address: (await readMachineInfo()).address, port }
  }
  const address = isIP(host) ? host : (await lookup(host)).address
  return { address, port }
}
