// Registers the node and keeps it alive: the Node object with labels, size and conditions, and its lease. The lease is
// renewed every 10 s, the status on changes, when another writer has changed the Ready condition, and every 5 min.
// A node name whose lease another agent renews is rejected: two agents would unmount each other's volumes.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node, NodeStatus } from '../../api/kinds/node/node-schema.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, find } from '../../client/index.ts'
import type { MachineInfo } from './machine-info.ts'

export interface NodeHeartbeat {
  /**
   * Acquires the lease and creates the Node, with retries while the server is unavailable; throws NodeNameTakenError.
   * The first status already lists volumes in use of an earlier run, so that they are not detached.
   */
  register(volumesInUse: readonly string[], signal: AbortSignal): Promise<void>
  /** Renews until the signal fires; throws NodeNameTakenError if another agent took the name. */
  run(signal: AbortSignal): Promise<void>
  /** Runs `prepare`, then sets the Ready condition. */
  markReady(prepare: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Writes status.volumesInUse; awaited before a volume is mounted, to prevent its detach. */
  setVolumesInUse(names: readonly string[]): Promise<void>
}

export interface NodeHeartbeatDeps {
  readonly client: Client
  readonly nodeName: string
  /** Stable across restarts of this agent, unique among agents. */
  readonly identity: string
  readonly machine: MachineInfo
  readonly labels: Readonly<Record<string, string>>
  readonly podsMax: number
  readonly version: string
  /** The Node in a cache, if there is one; saves reads while it has the expected status. */
  cached?(): Readonly<Node> | undefined
  /** How often the lease is renewed. Default 10 s. */
  readonly renewMs?: number | undefined
  readonly clock: Clock
  readonly log: Logger
}

export class NodeNameTakenError extends Error {
  override readonly name = 'NodeNameTakenError'
}

export const NODE_LEASES = 'kube-node-lease'
const LEASE_SECONDS = 40
const RENEW_MS = 10_000
const STATUS_MS = 300_000
const STATUS_WRITES_MAX = 5

export function createNodeHeartbeat(deps: NodeHeartbeatDeps): NodeHeartbeat {
  const { client, nodeName, identity, machine, clock, log } = deps
  const ref = { name: nodeName }
  const leaseRef = { namespace: NODE_LEASES, name: nodeName }
  let isReady = false
  let volumesInUse: readonly string[] = []
  let statusWrittenMs = Number.NEGATIVE_INFINITY
  let writing: Promise<void> = Promise.resolve()

  /** The lease as last written; saves a read before each renewal. */
  let lease: Readonly<Lease> | undefined

  async function renew(): Promise<void> {
    const known = lease
    lease = undefined // unknown if the renewal fails
    lease = (known && (await renewKnown(known))) ?? (await renewRead())
  }

  /** Undefined on conflict: another writer, or an earlier renewal whose response was lost. */
  async function renewKnown(known: Readonly<Lease>): Promise<Readonly<Lease> | undefined> {
    try {
      return await client.update(leaseKind, { ...known, spec: { ...known.spec, ...mine() } })
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return undefined
      throw error
    }
  }

  async function renewRead(): Promise<Readonly<Lease>> {
    const current = await find(client, leaseKind, leaseRef)
    const own = mine()
    if (!current) {
      return client.create(leaseKind, { metadata: { ...leaseRef }, spec: { ...own, acquireTime: own.renewTime } })
    }
    const otherUntilMs = heldByOtherUntilMs(current, identity)
    if (otherUntilMs > clock.nowMs()) throw nameTaken(nodeName, current, clock.nowMs())
    const isTaking = current.spec?.holderIdentity !== identity
    const taking = isTaking
      ? { acquireTime: own.renewTime, leaseTransitions: (current.spec?.leaseTransitions ?? 0) + 1 }
      : {}
    // Conditional on resourceVersion: of two agents that start at once, one gets the name.
    return client.update(leaseKind, { ...current, spec: { ...current.spec, ...taking, ...own } })
  }

  const mine = () => ({
    holderIdentity: identity,
    leaseDurationSeconds: LEASE_SECONDS,
    renewTime: microTime(clock.nowMs()),
  })

  async function writeNode(): Promise<Readonly<Node>> {
    const labels = {
      'kubernetes.io/hostname': nodeName,
      'kubernetes.io/os': machine.os,
      'kubernetes.io/arch': machine.arch,
      ...deps.labels,
    }
    const found = await find(client, nodeKind, ref)
    if (!found) return client.create(nodeKind, { metadata: { name: nodeName, labels }, status: status(undefined) })
    const existing = found.metadata.labels ?? {}
    if (Object.entries(labels).every(([key, value]) => existing[key] === value)) return found
    return client.patch(nodeKind, ref, { type: 'merge', body: { metadata: { labels } } })
  }

  /** Serialized, or an older list of volumes in use could be written last. */
  async function writeStatus(): Promise<void> {
    const mine = writing.catch(() => {}).then(untilStatusWritten)
    writing = mine
    await mine
  }

  /** Conditional on resourceVersion, so that a delayed request of an earlier run has no effect. */
  async function untilStatusWritten(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const found = await client.get(nodeKind, ref)
      const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, status: status(found) }
      try {
        await client.patch(nodeKind, ref, { type: 'strategic', body }, { subresource: 'status' })
        statusWrittenMs = clock.monotonicMs()
        return
      } catch (error) {
        if (!isConflict(error) || tries === STATUS_WRITES_MAX) throw error
      }
    }
  }

  /** Node lifecycle sets Ready to Unknown after a while without reports; the agent must write it again. */
  async function isOverwritten(): Promise<boolean> {
    const isExpected = (node: Readonly<Node> | undefined): boolean =>
      node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === (isReady ? 'True' : 'False')
    return !isExpected(deps.cached?.()) && !isExpected(await client.get(nodeKind, ref))
  }

  function status(before: Readonly<Node> | undefined): NodeStatus {
    const size = {
      cpu: String(machine.cpus),
      memory: `${Math.floor(machine.memoryBytes / 1024)}Ki`,
      pods: String(deps.podsMax),
    }
    const now = timestamp(clock.nowMs())
    const condition = (type: string, holds: boolean, reason: string, message: string) => {
      const old = before?.status?.conditions?.find((one) => one.type === type)
      const is = holds ? 'True' : 'False'
      const lastTransitionTime = old?.status === is ? (old.lastTransitionTime ?? now) : now
      return { type, status: is, reason, message, lastHeartbeatTime: now, lastTransitionTime }
    }
    return {
      capacity: size,
      allocatable: size,
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
      // Null removes the list; an empty one would be omitted and leave the old list.
      volumesInUse: (volumesInUse.length > 0 ? [...volumesInUse] : null) as string[],
    }
  }

  async function untilDone(
    attempt: () => Promise<void>,
    signal: AbortSignal,
    isPassing: (error: unknown) => boolean = isTransient,
  ): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof NodeNameTakenError || !isPassing(error)) throw error
        log.warn({ node: nodeName, because: (error as Error).message }, 'cannot register the node; retrying')
        await clock.sleep(RETRY_MS, signal)
      }
    }
  }

  return {
    register(inUse, signal) {
      volumesInUse = inUse
      return untilDone(async () => {
        await renew()
        await writeNode()
      }, signal)
    },
    markReady: (prepare, signal) =>
      untilDone(
        async () => {
          await writeNode() // it may have been deleted since registration
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
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(deps.renewMs ?? RENEW_MS, signal).catch(() => {})
        if (signal.aborted) return
        try {
          await renew()
          const isDue = clock.monotonicMs() - statusWrittenMs >= STATUS_MS
          if (isDue || (await isOverwritten())) await writeStatus()
        } catch (error) {
          if (error instanceof NodeNameTakenError) throw error
          if (isNotFound(error)) {
            await writeNode().catch(() => {}) // the Node was deleted while the agent runs
            statusWrittenMs = Number.NEGATIVE_INFINITY
          }
          log.warn(
            { node: nodeName, because: (error as Error).message },
            'cannot renew the node lease or write its status; retrying',
          )
        }
      }
    },
  }
}

const RETRY_MS = 1_000

/** Until when another agent holds the lease; -Infinity if none does. */
export function heldByOtherUntilMs({ spec }: Readonly<Lease>, identity: string): number {
  if (!spec?.holderIdentity || spec.holderIdentity === identity || !spec.renewTime) return Number.NEGATIVE_INFINITY
  return Date.parse(spec.renewTime) + (spec.leaseDurationSeconds ?? LEASE_SECONDS) * 1_000
}

function nameTaken(nodeName: string, { spec }: Readonly<Lease>, nowMs: number): NodeNameTakenError {
  const agoSeconds = Math.max(0, Math.round((nowMs - Date.parse(spec?.renewTime ?? '')) / 1_000))
  return new NodeNameTakenError(
    `The node name "${nodeName}" is used by another agent (${spec?.holderIdentity}), which renewed its lease ${agoSeconds} s ago. ` +
      `Choose another --node-name, or stop that agent and wait ${spec?.leaseDurationSeconds ?? LEASE_SECONDS} s.`,
  )
}

/** Worth a retry: the server is unavailable or overloaded, or a conflict. */
const isTransient = (error: unknown): boolean =>
  error instanceof ApiError && (error.code >= 500 || error.code === 429 || isConflict(error) || isAlreadyExists(error))

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
const microTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`
