// Finds the sockets of CSI drivers on this machine: in the data directory of `stowage up`, and in the directory of a
// kubelet. A socket that the user names needs no search.
import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { parseSocketPath } from '../../../csi/socket-path.ts'
import { stateIn } from '../../../driver/pool/pool-layout.ts'

/** The address of a driver's socket, and the directories that belong to it. */
export interface SocketPlace {
  readonly address: string
  readonly pool?: string
  readonly nodeRoot?: string
}

const KUBELET_ROOT = '/var/lib/kubelet'

export async function findSockets(dataDir: string, kubeletRoot = KUBELET_ROOT): Promise<SocketPlace[]> {
  const nodes = await listNames(join(dataDir, 'nodes'))
  const plugins = await listNames(join(kubeletRoot, 'plugins'))
  const addresses = [
    ...nodes.map((node) => join(dataDir, 'nodes', node, 'csi.sock')),
    ...(await Promise.all(nodes.map((node) => listStartedDrivers(join(dataDir, 'nodes', node, 'drivers'))))).flat(),
    ...(await Promise.all(plugins.map((plugin) => listSockets(join(kubeletRoot, 'plugins', plugin))))).flat(),
  ]
  const sockets = await Promise.all(addresses.map(async (address) => ((await isSocket(address)) ? [address] : [])))
  return Promise.all(sockets.flat().map((address) => describeSocket(address, kubeletRoot)))
}

/** Adds the directories that belong to a socket: those of a `stowage up` node, or of the kubelet that the plugin registers with. */
export async function describeSocket(address: string, kubeletRoot = KUBELET_ROOT): Promise<SocketPlace> {
  const path = parseSocketPath(address)
  const [pool, agent] = [join(dirname(path), 'pool'), join(dirname(path), 'agent')]
  const hasPool = await stat(stateIn(pool)).then(
    () => true,
    () => false,
  )
  const hasAgent = await isDirectory(agent)
  const nodeAgent = join(dirname(path), '..', '..', 'agent') // of a driver in NODE/drivers/NAME/
  const isStarted = basename(join(dirname(path), '..')) === 'drivers' && (await isDirectory(nodeAgent))
  const isPlugin = path.startsWith(`${kubeletRoot}/plugins/`)
  const nodeRoot = hasAgent && hasPool ? agent : isStarted ? nodeAgent : isPlugin ? kubeletRoot : undefined
  return {
    address,
    // The kernel reports the backing files of loop devices with symbolic links resolved.
    ...(hasPool ? { pool: await realpath(pool) } : {}),
    ...(nodeRoot === undefined ? {} : { nodeRoot }),
  }
}

const listNames = (directory: string): Promise<string[]> => readdir(directory).catch(() => [])

/** Returns the socket paths of drivers that `stowage up --driver COMMAND` has started, even if they have ended. */
const listStartedDrivers = async (directory: string): Promise<string[]> =>
  (await listNames(directory)).map((name) => join(directory, name, 'csi.sock'))

const listSockets = async (directory: string): Promise<string[]> =>
  (await listNames(directory)).filter((name) => name.endsWith('.sock')).map((name) => join(directory, name))

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

const isSocket = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isSocket(),
    () => false,
  )
