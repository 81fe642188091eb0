// Adds the operations of the other servers on a shared store to this server's list. The other servers are found in the Endpoints
// default/kubernetes. For each of them, this server watches its operations and those of the processes that report to it.
import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { endpointsKind } from '../../api/kinds/kubernetes-service/kubernetes-service.ts'
import type { Endpoints } from '../../api/kinds/kubernetes-service/kubernetes-service-schema.ts'
import { operationKind, SERVER_LABEL } from '../../api/kinds/operation/operation.ts'
import type { Operation, OperationReference } from '../../api/kinds/operation/operation-schema.ts'
import type { OperationBoard } from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { type Logger, silentLog } from '../../base/log.ts'
import { type Client, type HttpClient, httpClient } from '../../client/index.ts'
import { createCache } from '../../runtime/index.ts'

export interface PeerOperationsOptions {
  /** Reads the Endpoints. */
  readonly client: Client
  readonly operations: Pick<OperationBoard, 'applyPeer' | 'removePeer'>
  /** The address of this server in the Endpoints. */
  readonly endpoint: { readonly address: string; readonly port: number }
  /** `server` is the URL of another server. */
  connect(server: string): Client & Pick<HttpClient, 'close'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Watches the operations of the other servers until the signal is aborted. */
export async function followPeerOperations(options: PeerOperationsOptions): Promise<void> {
  const { client, clock, random, log, signal } = options
  const ownAddress = formatAddress(options.endpoint.address, options.endpoint.port)
  /** The functions that stop watching a server, by address. */
  const peers = new Map<string, () => void>()
  const follow = (addresses: readonly string[]) => {
    for (const [address, end] of peers) {
      if (addresses.includes(address)) continue
      peers.delete(address)
      end()
    }
    for (const address of addresses)
      if (address !== ownAddress && !peers.has(address)) peers.set(address, followPeer(address, options))
  }
  const endpoints = createCache({
    client,
    kind: endpointsKind,
    namespace: 'default',
    fieldSelector: 'metadata.name=kubernetes',
    clock,
    random,
    log,
  })
  endpoints.subscribe({
    added: (object) => follow(listAddresses(object)),
    updated: (object) => follow(listAddresses(object)),
    deleted: () => follow([]),
  })
  await endpoints.run(signal)
  follow([])
}

/** Returns a function that stops watching the server and removes its operations. */
function followPeer(address: string, { operations, connect, clock, random }: PeerOperationsOptions): () => void {
  const client = connect(`https://${address}`)
  const abort = new AbortController()
  const changed = new Map<string, Operation>()
  const removed = new Map<string, OperationReference>()
  let isScheduled = false
  /** Batches the changes of one turn of the event loop, because a list has many operations. */
  const applyLater = () => {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      if (!abort.signal.aborted)
        operations.applyPeer(address, { changed: [...changed.values()], removed: [...removed.values()] })
      changed.clear()
      removed.clear()
    })
  }
  const put = (operation: Operation) => {
    const reference = referenceTo(operation)
    const key = `${reference.namespace}/${reference.name}`
    removed.delete(key)
    changed.set(key, operation)
    applyLater()
  }
  const remove = (operation: Operation) => {
    const reference = referenceTo(operation)
    const key = `${reference.namespace}/${reference.name}`
    changed.delete(key)
    removed.set(key, reference)
    applyLater()
  }
  // Do not log errors: the server may have stopped, and then its endpoint disappears.
  const cache = createCache({
    client,
    kind: operationKind,
    labelSelector: `!${SERVER_LABEL}`,
    clock,
    random,
    log: silentLog,
  })
  cache.subscribe({ added: put, updated: put, deleted: remove })
  void cache.run(abort.signal)
  return () => {
    abort.abort()
    client.close()
    operations.removePeer(address)
  }
}

const referenceTo = ({ metadata: { namespace = '', name = '' } }: Operation): OperationReference => ({
  namespace,
  name,
})

const listAddresses = ({ subsets = [] }: Readonly<Endpoints>): string[] =>
  subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.flatMap(({ port }) => addresses.map(({ ip }) => formatAddress(ip ?? '', port ?? 0))),
  )

const formatAddress = (ip: string, port: number): string => `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`

/**
 * Connects with the viewer certificate in `pkiDir`. Reads it for each request, because it may have been renewed.
 */
export const connectAsViewer =
  ({ pkiDir, caCert, clock }: { readonly pkiDir: string; readonly caCert: string; readonly clock: Clock }) =>
  (server: string): HttpClient =>
    httpClient({
      connection: {
        server,
        ca: caCert,
        credentials: async () => ({
          cert: await readFile(join(pkiDir, 'viewer.crt'), 'utf8'),
          key: await readFile(join(pkiDir, 'viewer.key'), 'utf8'),
        }),
      },
      clock,
      userAgent: 'stowage-server',
    })
