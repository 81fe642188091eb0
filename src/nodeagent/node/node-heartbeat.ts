// Registers the node and maintains the Node object and its lease. By default the lease is renewed every 10 s. The status is
// written on changes, after another writer has changed the Ready condition, and every 5 min. If another agent holds the
// lease, the agent stops, because two agents with the same node name would unmount each other's volumes.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node, NodeStatus } from '../../api/kinds/node/node-schema.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { microTimestamp, timestamp } from '../../base/timestamps.ts'
import { type Client, find } from '../../client/index.ts'
import type { MachineInfo } from './machine-info.ts'

export interface NodeHeartbeat {
  /**
   * Acquires the lease and creates the Node. Retries while the server is unavailable. Throws NodeNameTakenError.
   * The first status lists the volumes in use since an earlier run, so that they are not detached.
   */
  register(volumesInUse: readonly string[], signal: AbortSignal): Promise<void>
  /**
   * Renews the lease and maintains the status until the signal is aborted. Throws NodeNameTakenError if another agent has
   * acquired the lease.
   */
  run(signal: AbortSignal): Promise<void>
  /** Runs `prepare`, then sets the Ready condition. */
  markReady(prepare: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Writes status.volumesInUse. Must be awaited before a volume is mounted, to prevent its detach. */
  setVolumesInUse(names: readonly string[]): Promise<void>
  /** Writes the port on which the agent serves logs and commands to status.daemonEndpoints. */
  setPort(port: number): Promise<void>
}

export interface NodeHeartbeatDeps {
  readonly client: Client
  readonly nodeName: string
  /** Identifies this agent: stable across restarts, and unique among agents. */
  readonly identity: string
  readonly machine: MachineInfo
  readonly labels: Readonly<Record<string, string>>
  readonly podsMax: number
  readonly version: string
  /** Returns the cached Node, which saves a read if it has the expected status. */
  cachedNode?(): Readonly<Node> | undefined
  /** How long the lease is valid without a renewal. Default 40 s. */
  readonly leaseMs?: number | undefined
  /** The interval at which the lease is renewed. Default: a quarter of `leaseMs`. */
  readonly renewIntervalMs?: number | undefined
  readonly clock: Clock
  readonly log: Logger
}

export class NodeNameTakenError extends Error {
  override readonly name = 'NodeNameTakenError'
}

const NODE_LEASES = 'kube-node-lease'
/** kube-controller-manager attaches volumes only to nodes with this annotation. */
const ANNOTATIONS = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' }
const LEASE_MS = 40_000
const RENEWALS_PER_LEASE = 4
const STATUS_INTERVAL_MS = 300_000
const STATUS_WRITES_MAX = 5

export function createNodeHeartbeat(deps: NodeHeartbeatDeps): NodeHeartbeat {
  const { client, nodeName, identity, machine, clock, log, leaseMs = LEASE_MS } = deps
  const renewIntervalMs = deps.renewIntervalMs ?? leaseMs / RENEWALS_PER_LEASE
  const ref = { name: nodeName }
  const leaseRef = { namespace: NODE_LEASES, name: nodeName }
  let isReady = false
  let volumesInUse: readonly string[] = []
  let port = 0 // 0: the agent does not serve logs or commands
  let statusWrittenMs = Number.NEGATIVE_INFINITY
  let lastWrite: Promise<void> = Promise.resolve()

  /** The lease after the last write, which saves a read before each renewal. */
  let lease: Readonly<Lease> | undefined

  async function renew(): Promise<void> {
    const cachedLease = lease
    lease = undefined // unknown if the renewal fails
    lease = (cachedLease && (await renewCached(cachedLease))) ?? (await readAndRenew())
  }

  /** Returns undefined on conflict, e.g. because the response to an earlier renewal was lost. */
  async function renewCached(cachedLease: Readonly<Lease>): Promise<Readonly<Lease> | undefined> {
    try {
      return await client.update(leaseKind, { ...cachedLease, spec: { ...cachedLease.spec, ...renewedSpec() } })
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return undefined
      throw error
    }
  }

  async function readAndRenew(): Promise<Readonly<Lease>> {
    const currentLease = await find(client, leaseKind, leaseRef)
    const renewal = renewedSpec()
    if (!currentLease) {
      return client.create(leaseKind, {
        metadata: { ...leaseRef },
        spec: { ...renewal, acquireTime: renewal.renewTime },
      })
    }
    const otherUntilMs = otherHolderUntilMs(currentLease, identity)
    if (otherUntilMs > clock.nowMs()) throw createNameTakenError(nodeName, currentLease, clock.nowMs())
    const isNewHolder = currentLease.spec?.holderIdentity !== identity
    const transition = isNewHolder
      ? { acquireTime: renewal.renewTime, leaseTransitions: (currentLease.spec?.leaseTransitions ?? 0) + 1 }
      : {}
    // Conditional on resourceVersion, so that only one of two agents that start concurrently acquires the lease.
    return client.update(leaseKind, { ...currentLease, spec: { ...currentLease.spec, ...transition, ...renewal } })
  }

  const renewedSpec = () => ({
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    renewTime: microTimestamp(clock.nowMs()),
  })

  async function writeNode(): Promise<Readonly<Node>> {
    const labels = {
      'kubernetes.io/hostname': nodeName,
      'kubernetes.io/os': machine.os,
      'kubernetes.io/arch': machine.arch,
      ...deps.labels,
    }
    const metadata = { labels, annotations: ANNOTATIONS }
    const node = await find(client, nodeKind, ref)
    if (!node) return client.create(nodeKind, { metadata: { ...ref, ...metadata }, status: buildStatus(undefined) })
    if (hasEntries(node.metadata.labels, labels) && hasEntries(node.metadata.annotations, ANNOTATIONS)) return node
    return client.patch(nodeKind, ref, { type: 'merge', body: { metadata } })
  }

  /** Serializes writes, so that an older list of volumes in use is never written last. */
  async function writeStatus(): Promise<void> {
    const currentWrite = lastWrite.catch(() => {}).then(writeStatusWithRetries)
    lastWrite = currentWrite
    await currentWrite
  }

  /** Writes are conditional on resourceVersion, so that a delayed request of an earlier run has no effect. */
  async function writeStatusWithRetries(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const node = await client.get(nodeKind, ref)
      const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, status: buildStatus(node) }
      try {
        await client.patch(nodeKind, ref, { type: 'strategic', body }, { subresource: 'status' })
        statusWrittenMs = clock.monotonicMs()
        return
      } catch (error) {
        if (!isConflict(error) || attempt === STATUS_WRITES_MAX) throw error
      }
    }
  }

  /** Whether another writer has changed the Ready condition. The node lifecycle controller may set it to Unknown. */
  async function isOverwritten(): Promise<boolean> {
    const isExpected = (node: Readonly<Node> | undefined): boolean =>
      node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === (isReady ? 'True' : 'False')
    return !isExpected(deps.cachedNode?.()) && !isExpected(await client.get(nodeKind, ref))
  }

  function buildStatus(previousNode: Readonly<Node> | undefined): NodeStatus {
    const resources = {
      cpu: String(machine.cpus),
      memory: `${Math.floor(machine.memoryBytes / 1024)}Ki`,
      pods: String(deps.podsMax),
    }
    const timestampNow = timestamp(clock.nowMs())
    const condition = (type: string, isTrue: boolean, reason: string, message: string) => {
      const oldCondition = previousNode?.status?.conditions?.find((candidate) => candidate.type === type)
      const status = isTrue ? 'True' : 'False'
      const lastTransitionTime =
        oldCondition?.status === status ? (oldCondition.lastTransitionTime ?? timestampNow) : timestampNow
      return { type, status, reason, message, lastHeartbeatTime: timestampNow, lastTransitionTime }
    }
    return {
      capacity: resources,
      allocatable: resources,
      addresses: [
        { type: 'InternalIP', address: machine.address },
        { type: 'Hostname', address: machine.hostname },
      ],
      conditions: [
        condition('MemoryPressure', false, 'KubeletHasSufficientMemory', 'memory of the node is not monitored'),
        condition('DiskPressure', false, 'KubeletHasNoDiskPressure', 'disk of the node is not monitored'),
        condition('PIDPressure', false, 'KubeletHasSufficientPID', 'processes of the node are not monitored'),
        isReady
          ? condition('Ready', true, 'KubeletReady', 'the node agent is ready')
          : condition('Ready', false, 'KubeletNotReady', 'the node agent is starting'),
      ],
      nodeInfo: {
        machineID: machine.machineId,
        systemUUID: machine.machineId,
        bootID: machine.bootId,
        kernelVersion: machine.kernel,
        osImage: machine.system,
        containerRuntimeVersion: `stowage://${deps.version}`,
        kubeletVersion: deps.version,
        kubeProxyVersion: '',
        operatingSystem: machine.os,
        architecture: machine.arch,
      },
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      // Null removes the list. An empty list would be omitted from the patch.
      volumesInUse: (volumesInUse.length > 0 ? [...volumesInUse] : null) as string[],
    }
  }

  async function retryUntilDone(
    attempt: () => Promise<void>,
    signal: AbortSignal,
    isRetryable: (error: unknown) => boolean = isTransient,
  ): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof NodeNameTakenError || !isRetryable(error)) throw error
        log.warn(
          { node: nodeName, reason: (error as Error).message },
          'cannot register the node or set it ready; retrying',
        )
        await clock.sleep(RETRY_DELAY_MS, signal)
      }
    }
  }

  return {
    register(inUse, signal) {
      volumesInUse = inUse
      return retryUntilDone(async () => {
        await renew()
        await writeNode()
      }, signal)
    },
    markReady: (prepare, signal) =>
      retryUntilDone(
        async () => {
          await writeNode() // the Node may have been deleted since registration
          await prepare()
          isReady = true
          await writeStatus()
        },
        signal,
        (error) => isTransient(error) || isNotFound(error),
      ),
    async setVolumesInUse(names) {
      volumesInUse = names
      await writeStatus()
    },
    async setPort(newPort) {
      port = newPort
      statusWrittenMs = Number.NEGATIVE_INFINITY // if this write fails, the next renewal repeats it
      await writeStatus()
    },
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(renewIntervalMs, signal).catch(() => {})
        if (signal.aborted) return
        try {
          await renew()
          const isDue = clock.monotonicMs() - statusWrittenMs >= STATUS_INTERVAL_MS
          if (isDue || (await isOverwritten())) await writeStatus()
        } catch (error) {
          if (error instanceof NodeNameTakenError) throw error
          if (isNotFound(error)) {
            await writeNode().catch(() => {}) // the Node was deleted while the agent was running
            statusWrittenMs = Number.NEGATIVE_INFINITY
          }
          log.warn(
            { node: nodeName, reason: (error as Error).message },
            'cannot renew the node lease or write its status; retrying',
          )
        }
      }
    },
  }
}

const RETRY_DELAY_MS = 1_000

const leaseSecondsOf = (spec: Lease['spec']): number => spec?.leaseDurationSeconds ?? LEASE_MS / 1_000

/** Returns the time until which another agent holds the lease, or -Infinity if none does. */
function otherHolderUntilMs({ spec }: Readonly<Lease>, identity: string): number {
  if (!spec?.holderIdentity || spec.holderIdentity === identity || !spec.renewTime) return Number.NEGATIVE_INFINITY
  return Date.parse(spec.renewTime) + leaseSecondsOf(spec) * 1_000
}

function createNameTakenError(nodeName: string, { spec }: Readonly<Lease>, nowMs: number): NodeNameTakenError {
  const secondsSinceRenewal = Math.max(0, Math.round((nowMs - Date.parse(spec?.renewTime ?? '')) / 1_000))
  return new NodeNameTakenError(
    `The node name "${nodeName}" is used by another agent (${spec?.holderIdentity}), which renewed its lease ${secondsSinceRenewal} s ago. ` +
      `Choose another --node-name, or stop that agent and wait ${leaseSecondsOf(spec)} s.`,
  )
}

const hasEntries = (map: Readonly<Record<string, string>> = {}, entries: Readonly<Record<string, string>>): boolean =>
  Object.entries(entries).every(([key, value]) => map[key] === value)

/** Whether the error is worth a retry: the server is unavailable or overloaded, or there was a conflict. */
const isTransient = (error: unknown): boolean =>
  error instanceof ApiError && (error.code >= 500 || error.code === 429 || isConflict(error) || isAlreadyExists(error))
