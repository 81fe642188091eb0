// The node's own objects: Node with labels, size and conditions, and the lease that says the agent is alive. The lease is
// renewed every ten seconds, the status when it changes, when it was contradicted, and every five minutes.
// A name whose lease another agent renews is refused: two agents would unmount each other's volumes.
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node, NodeStatus } from '../../api/kinds/node/node-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { MachineFacts } from './facts.ts'

export interface NodePresence {
  /**
   * Takes the name and writes the Node, however long the server is away; throws NodeNameTakenError. What an earlier life
   * left in use is said from the first word on: a Node that says nothing of a volume lets it be detached.
   */
  begin(volumesInUse: readonly string[], signal: AbortSignal): Promise<void>
  /** Stays present until the signal fires; throws NodeNameTakenError if the name was lost meanwhile. */
  keep(signal: AbortSignal): Promise<void>
  /** From now on the node says that it takes pods: once `prepare` is done and the server has been told. */
  ready(prepare: () => Promise<void>, signal: AbortSignal): Promise<void>
  /** Which attached volumes must not be detached: in the status before any of them is mounted. */
  setVolumesInUse(names: readonly string[]): Promise<void>
}

export interface PresenceDeps {
  readonly client: Client
  readonly nodeName: string
  /** The same across restarts of one agent, different for every other. */
  readonly identity: string
  readonly machine: MachineFacts
  readonly labels: Readonly<Record<string, string>>
  readonly podsMax: number
  readonly version: string
  /** The Node as a watch last told it, if one does: while that is as it should be, the server is not asked. */
  seen?(): Readonly<Node> | undefined
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

export function createNodePresence(deps: PresenceDeps): NodePresence {
  const { client, nodeName, identity, machine, clock, log } = deps
  const ref = { name: nodeName }
  const leaseRef = { namespace: NODE_LEASES, name: nodeName }
  let isReady = false
  let volumesInUse: readonly string[] = []
  let statusWrittenMs = Number.NEGATIVE_INFINITY
  let writing: Promise<void> = Promise.resolve()

  /** As it was last written: as long as nobody else writes it, it need not be read. */
  let lease: Readonly<Lease> | undefined

  async function renew(): Promise<void> {
    const known = lease
    lease = undefined // until it is known how this ends
    lease = (known && (await renewKnown(known))) ?? (await renewRead())
  }

  /** Undefined: somebody else wrote it, or it was this agent and the answer was lost. */
  async function renewKnown(known: Readonly<Lease>): Promise<Readonly<Lease> | undefined> {
    try {
      return await client.update(leaseKind, { ...known, spec: { ...known.spec, ...mine() } })
    } catch (error) {
      if (error instanceof ApiError && (error.code === 404 || error.code === 409)) return undefined
      throw error
    }
  }

  async function renewRead(): Promise<Readonly<Lease>> {
    const current = await client.get(leaseKind, leaseRef).catch(ifMissing)
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
    // Names the version that was read: of two agents that start at once, one gets the name.
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
    const found = await client.get(nodeKind, ref).catch(ifMissing)
    if (!found) return client.create(nodeKind, { metadata: { name: nodeName, labels }, status: status(undefined) })
    const there = found.metadata.labels ?? {}
    if (Object.entries(labels).every(([key, value]) => there[key] === value)) return found
    return client.patch(nodeKind, ref, { type: 'merge', body: { metadata: { labels } } })
  }

  /** One after the other, or an older list of volumes in use could come last. */
  async function writeStatus(): Promise<void> {
    const mine = writing.catch(() => {}).then(untilStatusWritten)
    writing = mine
    await mine
  }

  /** Names the version that was read: a request that comes late, perhaps of an earlier life, says nothing any more. */
  async function untilStatusWritten(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const found = await client.get(nodeKind, ref)
      const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, status: status(found) }
      try {
        await client.patch(nodeKind, ref, { type: 'strategic', body }, { subresource: 'status' })
        statusWrittenMs = clock.monotonicMs()
        return
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 409) || tries === STATUS_WRITES_MAX) throw error
      }
    }
  }

  /** A node that was silent for a while is called Unknown; only its own agent can say better. */
  async function isContradicted(): Promise<boolean> {
    const isAsSaid = (node: Readonly<Node> | undefined): boolean =>
      node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === (isReady ? 'True' : 'False')
    return !isAsSaid(deps.seen?.()) && !isAsSaid(await client.get(nodeKind, ref))
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
        condition('MemoryPressure', false, 'KubeletHasSufficientMemory', 'memory of the node is not watched'),
        condition('DiskPressure', false, 'KubeletHasNoDiskPressure', 'disk of the node is not watched'),
        condition('PIDPressure', false, 'KubeletHasSufficientPID', 'processes of the node are not watched'),
        isReady
          ? condition('Ready', true, 'KubeletReady', 'the node agent takes pods')
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
      // An empty list would be left out, and what was there before would stay.
      volumesInUse: (volumesInUse.length > 0 ? [...volumesInUse] : null) as string[],
    }
  }

  async function untilDone(
    attempt: () => Promise<void>,
    signal: AbortSignal,
    isPassing: (error: unknown) => boolean = mayPass,
  ): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        if (error instanceof NodeNameTakenError || !isPassing(error)) throw error
        log.warn({ node: nodeName, because: (error as Error).message }, 'cannot register the node yet; trying again')
        await clock.sleep(RETRY_MS, signal)
      }
    }
  }

  return {
    begin(inUse, signal) {
      volumesInUse = inUse
      return untilDone(async () => {
        await renew()
        await writeNode()
      }, signal)
    },
    ready: (prepare, signal) =>
      untilDone(
        async () => {
          await writeNode() // somebody may have deleted it since it began
          await prepare()
          isReady = true
          await writeStatus()
        },
        signal,
        (error) => mayPass(error) || isMissing(error),
      ),
    async setVolumesInUse(names) {
      volumesInUse = names
      await writeStatus()
    },
    async keep(signal) {
      while (!signal.aborted) {
        await clock.sleep(deps.renewMs ?? RENEW_MS, signal).catch(() => {})
        if (signal.aborted) return
        try {
          await renew()
          const isDue = clock.monotonicMs() - statusWrittenMs >= STATUS_MS
          if (isDue || (await isContradicted())) await writeStatus()
        } catch (error) {
          if (error instanceof NodeNameTakenError) throw error
          if (isMissing(error)) {
            await writeNode().catch(() => {}) // somebody deleted the Node of a living agent
            statusWrittenMs = Number.NEGATIVE_INFINITY
          }
          log.warn({ node: nodeName, because: (error as Error).message }, 'the node could not report; trying again')
        }
      }
    },
  }
}

const RETRY_MS = 1_000

/** Until when somebody else has the name; a moment long past if nobody does. */
export function heldByOtherUntilMs({ spec }: Readonly<Lease>, identity: string): number {
  if (!spec?.holderIdentity || spec.holderIdentity === identity || !spec.renewTime) return Number.NEGATIVE_INFINITY
  return Date.parse(spec.renewTime) + (spec.leaseDurationSeconds ?? LEASE_SECONDS) * 1_000
}

function nameTaken(nodeName: string, { spec }: Readonly<Lease>, nowMs: number): NodeNameTakenError {
  const agoSeconds = Math.max(0, Math.round((nowMs - Date.parse(spec?.renewTime ?? '')) / 1_000))
  return new NodeNameTakenError(
    `The node name "${nodeName}" belongs to another agent (${spec?.holderIdentity}), which was alive ${agoSeconds} s ago. ` +
      `Choose another --node-name, or stop that agent and wait ${spec?.leaseDurationSeconds ?? LEASE_SECONDS} s.`,
  )
}

/** Worth another try: the server is away, or someone else wrote at the same moment. */
const mayPass = (error: unknown): boolean =>
  error instanceof ApiError && (error.code >= 500 || error.code === 429 || error.code === 409)

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.code === 404

function ifMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined
  throw error
}

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
const microTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`
