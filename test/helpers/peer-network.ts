// The network between etcd members, on loopback: each member advertises a proxy as its peer address, and a member can be cut off
// from the others in both directions. Members exchange messages over connections that either side opens, so a proxy must know
// which member connects: etcd sends the ID of the caller with every request between peers, in the header X-Server-From.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface PeerNetwork {
  /** HOST:PORT that each member advertises, in the order of the targets. */
  readonly endpoints: readonly string[]
  /** Closes the connections of a member to and from the others, and rejects new ones until `restore` is called. */
  cut(index: number): void
  restore(index: number): void
  close(): Promise<void>
}

interface PeerConnection {
  readonly from: string
  readonly to: number
  readonly client: Socket
}

const CALLER = /^x-server-from: *(\S+)\r?$/im

/** @param targets HOST:PORT on which each member listens for its peers. */
export async function startPeerNetwork(targets: readonly string[]): Promise<PeerNetwork> {
  const connections = new Set<PeerConnection>()
  const cutMembers = new Set<number>()
  /** The IDs of the members that have connected to each member. */
  const callers = targets.map(() => new Set<string>())

  /**
   * Returns the index of the member with this ID, or undefined until the member has connected to all others. It never connects to
   * itself, so only its own proxy has then not received the ID.
   */
  function findMember(id: string): number | undefined {
    const indexesWithoutId = callers.flatMap((ids, index) => (ids.has(id) ? [] : [index]))
    return indexesWithoutId.length === 1 ? indexesWithoutId[0] : undefined
  }

  function isCut({ from, to }: PeerConnection): boolean {
    const caller = findMember(from)
    return cutMembers.has(to) || (caller !== undefined && cutMembers.has(caller))
  }

  function accept(client: Socket, to: number): void {
    client.on('error', () => {})
    if (cutMembers.has(to)) return void client.destroy()
    client.once('data', (firstBytes) => {
      const from = CALLER.exec(firstBytes.toString('latin1'))?.[1] ?? ''
      if (from) callers[to]!.add(from)
      const connection = { from, to, client }
      if (isCut(connection)) return void client.destroy()
      const [host = '', port] = targets[to]!.split(':')
      const upstream = connect({ host, port: Number(port) })
      upstream.on('error', () => {})
      upstream.write(firstBytes)
      client.pipe(upstream).pipe(client)
      connections.add(connection)
      client.on('close', () => {
        connections.delete(connection)
        upstream.destroy()
      })
      upstream.on('close', () => void client.destroy())
    })
  }

  const servers = await Promise.all(
    targets.map(async (_, to): Promise<Server> => {
      const server = createServer((client) => accept(client, to)).listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  return {
    endpoints: servers.map((server) => `127.0.0.1:${(server.address() as { port: number }).port}`),
    cut(index) {
      cutMembers.add(index)
      for (const connection of connections) if (isCut(connection)) connection.client.destroy()
    },
    restore: (index) => void cutMembers.delete(index),
    async close() {
      const ends = servers.map((server) => new Promise((resolve) => server.close(resolve)))
      for (const { client } of connections) client.destroy()
      await Promise.all(ends)
    },
  }
}
