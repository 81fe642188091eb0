// A user of the synthetic cluster: creates claims over HTTPS, each connection one at a time, and counts in a watch those that are bound.
import { once } from 'node:events'
import { addAbortSignal } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import type { Pki } from '../../apiserver/index.ts'
import { SYNTHETIC_DRIVER } from './synthetic-driver.ts'

export interface SyntheticUser {
  /** Creates one claim on each connection. Resolves when all claims are bound. */
  createClaims(): Promise<void>
}

export interface SyntheticUserOptions {
  /** The path of the server's socket. */
  readonly socket: string
  readonly pki: Pick<Pki, 'caCert' | 'admin'>
  readonly connections: number
  /** Closes the connections, including those that are being opened. */
  readonly signal: AbortSignal
}

const CLASS = 'synthetic'
const CLASSES_PATH = '/apis/storage.k8s.io/v1/storageclasses'
const CLAIMS_PATH = '/api/v1/namespaces/default/persistentvolumeclaims'
/** In the stored form of a claim whose binding is complete. */
const BOUND = '"phase":"Bound"'

export async function connectSyntheticUser(options: SyntheticUserOptions): Promise<SyntheticUser> {
  const open = () => openConnection(options)
  const watchSocket = await open()
  const sockets = await Promise.all(Array.from({ length: options.connections }, open))
  await post(watchSocket, CLASSES_PATH, { metadata: { name: CLASS }, provisioner: SYNTHETIC_DRIVER })
  let createdCount = 0
  const boundClaims = new Set<string>()
  let onBound = () => {}
  readLines(watchSocket, (line) => {
    const name = line.includes(BOUND) && /"name":"(claim-\d+)"/.exec(line)?.[1]
    if (!name) return
    boundClaims.add(name)
    onBound()
  })
  watchSocket.write(headOf('GET', `${CLAIMS_PATH}?watch=1`))
  return {
    async createClaims() {
      const target = createdCount + sockets.length
      const allBound = new Promise<void>((resolve) => {
        onBound = () => boundClaims.size >= target && resolve()
      })
      await Promise.all(sockets.map((socket) => post(socket, CLAIMS_PATH, claimOf(++createdCount))))
      await allBound
    },
  }
}

/** Some claims have labels and annotations, because V8 compiles code for the fields that it has seen. */
const claimOf = (number: number) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name: `claim-${number}`,
    ...(number % 3 > 0 ? { labels: { app: 'warm-up', number: String(number) } } : {}),
    ...(number % 3 > 1 ? { annotations: { note: 'synthetic' } } : {}),
  },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: CLASS, resources: { requests: { storage: '1Gi' } } },
})

async function openConnection({ socket: path, pki, signal }: SyntheticUserOptions): Promise<TLSSocket> {
  const { caCert: ca, admin } = pki
  const socket = connect({ path, ca, cert: admin.cert, key: admin.key, servername: 'localhost' })
  socket.on('error', () => {}) // the connection is closed on purpose
  addAbortSignal(signal, socket)
  await once(socket, 'secureConnect')
  return socket
}

const headOf = (method: string, path: string, bodyBytes = 0): string =>
  `${method} ${path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n` +
  `content-type: application/json\r\ncontent-length: ${bodyBytes}\r\n\r\n`

/** Creates an object. Reads the response without an HTTP client, whose compiled code would take memory. */
async function post(socket: TLSSocket, path: string, object: object): Promise<void> {
  const body = JSON.stringify(object)
  socket.write(headOf('POST', path, Buffer.byteLength(body)) + body)
  let response = ''
  while (!isComplete(response)) response += (await once(socket, 'data'))[0]
  if (!response.startsWith('HTTP/1.1 201 ')) throw new Error(`POST ${path}: ${response}`)
}

/** The responses are ASCII. */
function isComplete(response: string): boolean {
  const headEnd = response.indexOf('\r\n\r\n')
  const bodyLength = Number(/^content-length: (\d+)/im.exec(response)?.[1])
  return headEnd >= 0 && response.length >= headEnd + 4 + bodyLength
}

function readLines(socket: TLSSocket, onLine: (line: string) => void): void {
  let rest = ''
  socket.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}
