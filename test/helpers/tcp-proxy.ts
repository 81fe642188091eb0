// A TCP proxy on loopback that simulates a broken network: it closes connections, drops all data without closing them, or drops
// only the data from the server, so that responses are lost but requests are not.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  /** HOST:PORT to connect to. */
  readonly endpoint: string
  /** Closes every connection and rejects new ones until `restore` is called. */
  cut(): void
  /** Drops data in both directions until `restore` is called, as a network that loses every packet does. */
  dropData(): void
  /** Ends the fault. Closes connections that have lost data, because their streams have a gap. */
  restore(): void
  /** Drops data from the server until `restore` is called. Data from the client still arrives. */
  dropServerData(): void
  /** Sets the target of new connections. */
  retarget(target: string): void
  close(): Promise<void>
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  let [host = '', port] = target.split(':')
  const sockets = new Set<Socket>()
  const damagedSockets = new Set<Socket>()
  let isCut = false
  let dropsServerData = false
  let dropsData = false
  const server = createServer((client) => {
    if (isCut) return void client.destroy()
    const upstream = connect({ host, port: Number(port) })
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        damagedSockets.delete(socket)
        peer.destroy()
      })
      socket.on('data', (bytes) => {
        if (dropsData || (socket === upstream && dropsServerData)) return void damagedSockets.add(socket)
        peer.write(bytes)
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    endpoint: `127.0.0.1:${(server.address() as { port: number }).port}`,
    cut,
    dropData() {
      dropsData = true
    },
    restore() {
      isCut = false
      dropsServerData = false
      dropsData = false
      for (const socket of damagedSockets) socket.destroy()
    },
    dropServerData() {
      dropsServerData = true
    },
    retarget(newTarget) {
      ;[host = '', port] = newTarget.split(':')
    },
    async close() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
