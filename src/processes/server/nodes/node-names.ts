// Names the nodes of `stowage up` and their directories in DATA/nodes.
import { createHash } from 'node:crypto'

/** Returns the name of a node by its number, from 1. */
export type NodeNames = (number: number) => string

const DIRECTORY_PREFIX = 'node-'
/** The node name is also the value of the label kubernetes.io/hostname, which has at most 63 characters. */
const HOST_LENGTH_MAX = 40
const DIGEST_LENGTH = 4

export const directoryOf: NodeNames = (number) => `${DIRECTORY_PREFIX}${number}`

/** Returns the node number in a directory name, or undefined for other directories. */
export function parseNodeNumber(name: string): number | undefined {
  return /^node-[1-9]\d*$/.test(name) ? Number(name.slice(DIRECTORY_PREFIX.length)) : undefined
}

/** Returns the names of the nodes of a single server: node-1, node-2 and so on. */
export const localNodeNames: NodeNames = directoryOf

/**
 * Returns the names of the nodes of a server that shares its store, such as `web1-3fa2-1`: the host, four hexadecimal digits that
 * distinguish the data directories on the host, and the number.
 */
export function sharedNodeNames({
  hostname,
  dataDir,
}: {
  readonly hostname: string
  readonly dataDir: string
}): NodeNames {
  const digest = createHash('sha256').update(`${hostname} ${dataDir}`).digest('hex').slice(0, DIGEST_LENGTH)
  const host = hostname
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, HOST_LENGTH_MAX)
    .replaceAll(/^-+|-+$/g, '')
  return (number) => `${host || 'node'}-${digest}-${number}`
}
