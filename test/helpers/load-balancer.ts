// A TCP load balancer on loopback: forwards each connection to the next target that accepts it. A target can be marked as unhealthy,
// as a health check would: its connections are closed, and it receives no new ones.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface LoadBalancer {
  /** HOST:PORT to connect to. */
  readonly endpoint: string
  /** HOST:PORT of the healthy targets. */
  readonly targets: readonly string[]
  /** Adds a target, or marks it as healthy again. */
  add(target: string): void
  /** Marks a target as unhealthy. */
  remove(target: string): void
  close(): Promise<void>
}

export async function startLoadBalancer(): Promise<LoadBalancer> {
  const targets: string[] = []
  const connections = new Map<Socket, string>()
  let nextIndex = 0

  function forward(client: Socket, attempts: number): void {
    const target = targets[nextIndex++ % Math.max(1, targets.length)]
    if (target === undefined || attempts === 0) return void client.destroy()
    const [host = '', port] = target.split(':')
    const upstream = connect({ host, port: Number(port) })
    upstream.once('error', () => forward(client, attempts - 1))
    upstream.once('connect', () => {
      upstream.removeAllListeners('error').on('error', () => {})
      connections.set(client, target)
      client.pipe(upstream).pipe(client)
      client.on('close', () => {
        connections.delete(client)
        upstream.destroy()
      })
      upstream.on('close', () => void client.destroy())
    })
  }

  const server = createServer((client) => {
    client.on('error', () => {})
    forward(client, targets.length)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const closeConnections = (isClosed: (target: string) => boolean) => {
    for (const [client, target] of connections) if (isClosed(target)) client.destroy()
  }
  return {
    endpoint: `127.0.0.1:${(server.address() as { port: number }).port}`,
    targets,
    add(target) {
      if (!targets.includes(target)) targets.push(target)
    },
    remove(target) {
      if (targets.includes(target)) targets.splice(targets.indexOf(target), 1)
      closeConnections((connectedTarget) => connectedTarget === target)
    },
    async close() {
      targets.length = 0
      const serverClose = new Promise((resolve) => server.close(resolve))
      closeConnections(() => true)
      await serverClose
    },
  }
}
