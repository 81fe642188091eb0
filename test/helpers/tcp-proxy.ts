// A TCP proxy on loopback that can close connections, or drop only the data from the server, so that responses are lost but
// requests are not.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  /** HOST:PORT to connect to. */
  readonly endpoint: string
  /** Closes every connection and rejects new ones until `restore` is called. */
  cut(): void
  restore(): void
  /** Drops data from the server until `restore` is called. Data from the client still arrives. */
  muteReplies(): void
  /** Sets the target of new connections. */
  retarget(target: string): void
  close(): Promise<void>
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  let [host = '', port] = target.split(':')
  const sockets = new Set<Socket>()
  let isCut = false
  let isMuted = false
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
        peer.destroy()
      })
      socket.on('data', (bytes) => {
        if (socket === upstream && isMuted) return
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
    restore() {
      isCut = false
      isMuted = false
    },
    muteReplies() {
      isMuted = true
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
