// Attacks a server from a separate process, as one user: opens many connections and sends the text of the attack on each,
// once or again after each response. The number of connections is fixed. The attack ends with a stop job or with the process.
import { connect, type TLSSocket } from 'node:tls'
import type { Endpoint } from './http-connection.ts'

export type AttackJob =
  | { readonly do: 'start'; readonly endpoint: Endpoint; readonly attack: Attack }
  /** Closes all connections. */
  | { readonly do: 'stop' }

export interface Attack {
  readonly connections: number
  /** Sent on each connection. */
  readonly text: string
  /** Whether the responses are read. */
  readonly isRead: boolean
  /** If `isRead`: sends the text again on a connection this long after each response on it begins. */
  readonly repeatMs?: number
}

export interface AttackResult {
  /** Responses by status, as far as they were read. */
  readonly statuses: Readonly<Record<string, number>>
  /** Connections that the server has closed. */
  readonly closed: number
}

/** Connections that are opened at once. */
const CONCURRENT_HANDSHAKES = 25

let sockets: TLSSocket[] = []
let statuses: Record<string, number> = {}
let closedCount = 0
let isStopping = false
/** Resumed sessions shorten the handshakes, which are not measured. */
let session: Buffer | undefined

export async function runAttack(job: AttackJob): Promise<AttackResult> {
  if (job.do === 'start') await start(job.endpoint, job.attack)
  else await stop()
  return { statuses, closed: closedCount }
}

async function start(endpoint: Endpoint, attack: Attack): Promise<void> {
  ;[sockets, statuses, closedCount, isStopping] = [[], {}, 0, false]
  while (sockets.length < attack.connections) {
    const count = Math.min(CONCURRENT_HANDSHAKES, attack.connections - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: count }, () => openAttackConnection(endpoint, attack)))))
  }
}

async function openAttackConnection({ port, ca, cert, key }: Endpoint, attack: Attack): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca, cert, key, session })
  socket.on('session', (ticket) => (session = ticket))
  socket.on('error', () => {}) // the server may close the connection at any time
  socket.on('close', () => isStopping || closedCount++)
  await new Promise<void>((resolve) => socket.once('secureConnect', resolve).once('close', () => resolve()))
  if (attack.isRead) socket.on('data', (data) => readStatus(socket, data, attack))
  else socket.pause()
  socket.write(attack.text)
  return socket
}

function readStatus(socket: TLSSocket, data: Buffer, { text, repeatMs }: Attack): void {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1', 0, 12))?.[1]
  if (!status) return
  statuses[status] = (statuses[status] ?? 0) + 1
  if (repeatMs !== undefined) setTimeout(() => socket.writable && socket.write(text), repeatMs)
}

async function stop(): Promise<void> {
  isStopping = true
  const openSockets = sockets.filter((socket) => !socket.closed)
  await Promise.all(openSockets.map((socket) => new Promise((resolve) => socket.once('close', resolve).destroy())))
}
