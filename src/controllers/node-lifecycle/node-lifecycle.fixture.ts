// Fixture of the node lifecycle tests: an API server, nodes with and without reporting agents, and the controllers.
// `advance` advances the clock in steps. The controllers' writes are recorded in `writes`.
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { microTimestamp, timestamp } from '../../base/timestamps.ts'
import type { Client, WatchEvent, WatchRequest } from '../../client/index.ts'
import { createCacheSet, type EventDetails } from '../../runtime/index.ts'
import { createNodeLifecycleControllers, type NodeLifecycleMetrics, type NodeLifecycleOptions } from './index.ts'

export interface StartOptions extends NodeLifecycleOptions {
  readonly metrics?: NodeLifecycleMetrics
  /** Called before each get and write of the controllers. If it throws, the request fails with this error. */
  readonly intercept?: (verb: string, kind: string) => void | Promise<void>
  /** Whether events are written to the server instead of `events`. */
  readonly shouldStoreEvents?: boolean
  /** Whether the caches receive the initial state but no changes. */
  readonly hasStaleCaches?: boolean
}

export type NodeLifecycleFixture = Awaited<ReturnType<typeof createNodeLifecycleFixture>>

const LEASE_NAMESPACE = 'kube-node-lease'
const RENEW_MS = 10_000

export async function createNodeLifecycleFixture() {
  const server = await createServerFixture()
  const { clock } = server
  const client = server.client()
  const recordedEvents: (EventDetails & { readonly objectName: string })[] = []
  const writes: string[] = []
  const stops: (() => Promise<void>)[] = []

  /** The nodes whose leases `advance` renews. */
  const aliveNodes = new Set<string>()

  function start({ metrics, intercept, shouldStoreEvents, hasStaleCaches, ...options }: StartOptions = {}) {
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const controllerClient = server.clientOf('node-lifecycle')
    const caches = createCacheSet({
      client: hasStaleCaches ? hideChanges(controllerClient) : controllerClient,
      clock,
      random: () => 0.5,
    })
    const events = {
      record: (_kind: Kind, { metadata }: Readonly<KubeObject>, event: EventDetails) =>
        void recordedEvents.push({ ...event, objectName: metadata.name ?? '' }),
    }
    const controllers = createNodeLifecycleControllers({
      client: recordWrites(controllerClient, writes, intercept),
      caches,
      clock,
      random: () => 0.5,
      log: silentLog,
      options,
      ...(shouldStoreEvents ? {} : { events }),
      nodeLifecycleMetrics: metrics,
    })
    const run = controllers.run(abort.signal)
    let isStopped = false
    const stop = async () => {
      if (isStopped) return
      isStopped = true
      abort.abort()
      await run
      await caches.stop()
    }
    stops.push(stop)
    const queueState = (key: string) => controllers.queues.map((queue) => queue.stateOf(key)).find(Boolean)
    return { stop, queueState, queues: controllers.queues }
  }

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 60; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  async function renew(name: string): Promise<void> {
    const ref = { namespace: LEASE_NAMESPACE, name }
    const spec = {
      holderIdentity: `agent of ${name}`,
      leaseDurationSeconds: 40,
      renewTime: microTimestamp(clock.nowMs()),
    }
    const lease = await client.get(leaseKind, ref).catch(() => undefined)
    if (lease) await client.update(leaseKind, { ...lease, spec })
    else await client.create(leaseKind, { metadata: ref, spec })
  }

  const setConditions = (name: string, conditions: readonly object[]) =>
    client.patch(nodeKind, { name }, { type: 'strategic', body: { status: { conditions } } }, { subresource: 'status' })

  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: 'Test',
    message: 'reported by the agent',
    lastHeartbeatTime: timestamp(clock.nowMs()),
    lastTransitionTime: timestamp(clock.nowMs()),
  })

  /** Writes the status, as an agent does at start, on changes and periodically. */
  const report = (name: string, ready = 'True') =>
    setConditions(name, [condition('Ready', ready), condition('DiskPressure', 'False')])

  const fixture = {
    server,
    client,
    clock,
    events: recordedEvents,
    writes,
    eventReasons: () => recordedEvents.map(({ reason }) => reason),
    start,
    settle,
    renew,
    report,
    setConditions,
    condition,
    aliveNodes,
    /** Creates a node whose agent renews its lease. */
    async createNodeWithAgent(name: string) {
      await renew(name)
      await client.create(nodeKind, { metadata: { name } } as Node)
      await report(name)
      aliveNodes.add(name)
    },
    /** Creates a node without an agent. */
    createNode: (name: string) => client.create(nodeKind, { metadata: { name } } as Node),
    setTaints: (name: string, taints: readonly Taint[]) =>
      client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { taints } } }),
    createPod: (name: string, nodeName: string, spec: object = {}, metadata: object = {}) =>
      client.create(podKind, {
        metadata: { namespace: 'default', name, ...metadata },
        spec: { nodeName, containers: [{ name: 'main', image: 'any' }], ...spec },
      } as unknown as Pod),
    setPhase: (name: string, phase: string, reason?: string) =>
      client.patch(
        podKind,
        { namespace: 'default', name },
        { type: 'merge', body: { status: { phase, ...(reason ? { reason } : {}) } } },
        { subresource: 'status' },
      ),
    node: (name: string) => client.get(nodeKind, { name }),
    ready: async (name: string) =>
      (await client.get(nodeKind, { name })).status?.conditions?.find(({ type }) => type === 'Ready'),
    taints: async (name: string) =>
      ((await client.get(nodeKind, { name })).spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).sort(),
    pod: (name: string): Promise<Readonly<Pod> | undefined> =>
      client.get(podKind, { namespace: 'default', name }).catch(() => undefined),
    /** Advances the clock while renewing the leases of the nodes in `aliveNodes`. */
    async advance(ms: number) {
      for (let remainingMs = ms; remainingMs > 0; remainingMs -= RENEW_MS) {
        await settle()
        await clock.advance(Math.min(remainingMs, RENEW_MS))
        for (const name of aliveNodes) await renew(name)
        await settle()
      }
    },
    async close() {
      for (const stop of stops) await stop()
      await server.store.close()
    },
  }
  return fixture
}

function hideChanges(client: Client): Client {
  async function* initialEvents<T extends KubeObject>(kind: Kind<T>, request: WatchRequest) {
    const { signal, sendInitialEvents } = request
    // Without initial events the state was listed, and every event is a change.
    for await (const event of sendInitialEvents ? client.watch(kind, request) : ([] as WatchEvent<T>[])) {
      yield event
      if (event.type === 'bookmark' && event.endsInitialEvents) break
    }
    if (signal.aborted) return
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  }
  return { ...client, watch: initialEvents }
}

function recordWrites(client: Client, writes: string[], intercept?: StartOptions['intercept']): Client {
  const interceptVerb =
    (verb: 'get' | 'create' | 'update' | 'patch' | 'delete') =>
    async (kind: any, target: any, ...args: any[]) => {
      await intercept?.(verb, kind.kind)
      const name = target.metadata?.name ?? target.name
      const subresource = args.find((arg) => arg?.subresource)?.subresource
      if (verb !== 'get') writes.push(`${verb} ${kind.kind} ${name}${subresource ? `/${subresource}` : ''}`)
      return (client[verb] as any)(kind, target, ...args)
    }
  return {
    ...client,
    get: interceptVerb('get'),
    create: interceptVerb('create'),
    update: interceptVerb('update'),
    patch: interceptVerb('patch'),
    delete: interceptVerb('delete'),
  }
}
