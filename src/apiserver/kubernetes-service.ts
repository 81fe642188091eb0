// Publishes this server's address as Service, Endpoints and EndpointSlice default/kubernetes. Servers that share a
// store register themselves with a record that expires, so that the endpoints of a server disappear after it crashes.
import { isIPv6 } from 'node:net'
import type { Kind, KubeObject } from '../api/kind.ts'
import { endpointSliceKind, endpointsKind, serviceKind } from '../api/kinds/kubernetes-service/kubernetes-service.ts'
import type { EndpointSlice, Endpoints, Service } from '../api/kinds/kubernetes-service/kubernetes-service-schema.ts'
import type { Clock, Random } from '../base/clock.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Logger } from '../base/log.ts'
import { timestamp } from '../base/timestamps.ts'
import type { Store, TransactionView, Write } from '../store/index.ts'
import { objectKey } from './keys.ts'
import { decodeStored, encodeStored, sameContent } from './objects/stored-object.ts'

export interface ServerEndpoint {
  /** An IP address that clients can reach. */
  readonly address: string
  readonly port: number
}

export interface KubernetesServiceOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly endpoint: ServerEndpoint
  /** Whether other servers use the same store. */
  readonly isStoreShared: boolean
}

export interface PublishedService {
  /** Removes the endpoint of this server from a shared store, unless it is the last one. */
  stop(): Promise<void>
}

const NAME = 'kubernetes'
const NAMESPACE = 'default'
/** The records of servers that share the store. No resource has this prefix. */
const SERVERS_PREFIX = 'stowage.dev/servers/'
const RENEW_INTERVAL_MS = 20_000
const RECORD_TTL_MS = 60_000

/** Resolves when the objects are written. On a shared store, renews this server's record until `stop` is called. */
export async function publishKubernetesService(options: KubernetesServiceOptions): Promise<PublishedService> {
  const { store, clock, log, endpoint, isStoreShared } = options
  const ownKey = `${SERVERS_PREFIX}${endpoint.address}:${endpoint.port}`
  let isStopped = false
  let cancelRenewal = () => {}

  const write = (isRegistered: boolean) =>
    store.transact((view) => {
      const otherRecords = isStoreShared ? view.list(SERVERS_PREFIX).filter(({ key }) => key !== ownKey) : []
      const endpoints = [...otherRecords.map(({ key }) => endpointOfKey(key)), ...(isRegistered ? [endpoint] : [])]
      const record: Write[] = !isStoreShared
        ? []
        : isRegistered
          ? [{ put: ownKey, value: encodeStored({ metadata: {} }), expiresAtMs: clock.nowMs() + RECORD_TTL_MS }]
          : [{ delete: ownKey }]
      return [...record, ...objectWrites(view, endpoints, options)]
    })

  const renewLater = () => {
    cancelRenewal = clock.after(RENEW_INTERVAL_MS, async () => {
      try {
        if (!isStopped) await write(true)
      } catch (error) {
        log.warn({ reason: (error as Error).message }, 'cannot renew the endpoint of this server; retrying')
      }
      if (!isStopped) renewLater()
    })
  }

  await write(true)
  if (isStoreShared) renewLater()
  return {
    async stop() {
      isStopped = true
      cancelRenewal()
      if (isStoreShared) await write(false)
    },
  }
}

function endpointOfKey(key: string): ServerEndpoint {
  const text = key.slice(SERVERS_PREFIX.length)
  const colon = text.lastIndexOf(':')
  return { address: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

type Content<T> = Omit<T, 'metadata'> & { readonly labels: Record<string, string> }

function objectWrites(
  view: TransactionView,
  endpoints: readonly ServerEndpoint[],
  { clock, random }: KubernetesServiceOptions,
): Write[] {
  if (endpoints.length === 0) return []
  const contents: readonly [Kind, Content<KubeObject>][] = [
    [serviceKind, serviceOf(endpoints)],
    [endpointsKind, endpointsOf(endpoints)],
    [endpointSliceKind, endpointSliceOf(endpoints)],
  ]
  return contents.flatMap(([kind, { labels, ...fields }]) => {
    const key = objectKey(kind, NAMESPACE, NAME)
    const existingEntry = view.get(key)
    const previousMetadata = existingEntry && decodeStored(existingEntry).metadata
    const metadata: KubeObject['metadata'] = {
      name: NAME,
      namespace: NAMESPACE,
      uid: previousMetadata?.uid ?? randomUuid(random),
      creationTimestamp: previousMetadata?.creationTimestamp ?? timestamp(clock.nowMs()),
      labels,
    }
    const value = encodeStored({ metadata, ...fields } as KubeObject)
    return existingEntry && sameContent(existingEntry.value, value) ? [] : [{ put: key, value }]
  })
}

const PORT = { name: 'https', protocol: 'TCP' }

/** The Service has no virtual address, because there is no proxy: clients use the endpoints. */
function serviceOf(endpoints: readonly ServerEndpoint[]): Content<Service> {
  const { address, port } = endpoints[0]!
  return {
    labels: { component: 'apiserver', provider: NAME },
    spec: {
      clusterIP: 'None',
      clusterIPs: ['None'],
      internalTrafficPolicy: 'Cluster',
      ipFamilies: [isIPv6(address) ? 'IPv6' : 'IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports: [{ ...PORT, port, targetPort: port }],
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
    status: { loadBalancer: {} },
  }
}

/** Endpoints with the same port are one subset, as in Kubernetes. */
function endpointsOf(endpoints: readonly ServerEndpoint[]): Content<Endpoints> {
  const ports = [...new Set(endpoints.map(({ port }) => port))].sort((a, b) => a - b)
  return {
    labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    subsets: ports.map((port) => ({
      addresses: addressesOf(endpoints.filter((endpoint) => endpoint.port === port)).map((ip) => ({ ip })),
      ports: [{ ...PORT, port }],
    })),
  }
}

/** A slice has one port and one address type, so servers with another port or type are omitted. */
function endpointSliceOf(endpoints: readonly ServerEndpoint[]): Content<EndpointSlice> {
  const count = (port: number) => endpoints.filter((endpoint) => endpoint.port === port).length
  const [{ port, address }] = [...endpoints].sort((a, b) => count(b.port) - count(a.port) || a.port - b.port) as [
    ServerEndpoint,
  ]
  return {
    labels: { 'kubernetes.io/service-name': NAME },
    addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
    endpoints: addressesOf(
      endpoints.filter((endpoint) => endpoint.port === port && isIPv6(endpoint.address) === isIPv6(address)),
    ).map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
    ports: [{ ...PORT, port }],
  }
}

const addressesOf = (endpoints: readonly ServerEndpoint[]): string[] =>
  [...new Set(endpoints.map(({ address }) => address))].sort()
