// NodeExpandVolume: expands the file system of a mounted volume whose PV is larger than the claim's capacity, and saves
// the result in the claim's status (plan-expansion.ts decides). A failure leaves the volume usable. The size in the
// driver's response is ignored: a file system is smaller than its device, so the claim would never reach its request.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { type KeyedLock, keyedLock } from '../../base/keyed-lock.ts'
import { type Client, find } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain, redactCredentials } from '../../csi/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { EventDetails, EventRecorder } from '../../runtime/index.ts'
import { type Credentials, readCredentials } from '../../volumes/credentials.ts'
import {
  completedOnNodePatch,
  failureMessage,
  formatTime,
  nodeFailedPatch,
  nodeInfeasiblePatch,
  nodeStartedPatch,
  resizeStateOf,
  type StatusPatch,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { Drivers, RegisteredDriver } from '../registration/drivers.ts'
import { capabilityOf } from './capability.ts'
import type { CsiVolume } from './csi-volume.ts'
import { type MountRecords, type Publication, volumeKey } from './mount-records.ts'
import { groupOfPod } from './ownership.ts'
import { type NodeExpansionPlan, planNodeExpansion } from './plan-expansion.ts'

export interface ExpandDeps {
  readonly client: Client
  readonly drivers: Drivers
  readonly records: MountRecords
  readonly events: EventRecorder
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
}

/** A volume that is published for a pod. */
export interface PublishedVolume {
  readonly pod: Readonly<Pod>
  readonly volume: CsiVolume
  readonly publication: Publication
}

/** Expands the volume if it is due. Returns the delay until a retry, if one is needed. */
export type ExpandVolume = (grown: PublishedVolume, signal: AbortSignal) => Promise<number | undefined>

const CALL_TIMEOUT_MS = 120_000
const RETRY = { baseMs: 500, maxMs: 122_000 } // as the kubelet's, for operations on volumes
const EDITS_MAX = 5 // concurrent edits of the claim while its new size is saved; beyond this the expansion is repeated

type Claim = Readonly<PersistentVolumeClaim>
type Expansion = Extract<NodeExpansionPlan, { do: 'expand' }>

/** The state of a publication in this run of the agent. */
interface VolumeRecord {
  /** The claim's capacity when the volume was mounted. */
  size: string | undefined
  /** The last failed size, and how it failed. */
  failed?: { readonly size: string; readonly how: 'uncertain' | 'final' | 'inUse' }
  tries: number
  notBeforeMs: number
  hasReportedReadOnly: boolean
}

export function createExpandVolume(deps: ExpandDeps): ExpandVolume {
  const { client, drivers, records, events, metrics, clock, random } = deps
  /** By `uid/volume`; bounded by the mounted volumes, and swept when a volume is added. */
  const known = new Map<string, VolumeRecord>()
  const oneAtATime: KeyedLock = keyedLock()

  return async (grown, signal) => {
    const record = recordOf(grown)
    const plan = planNodeExpansion(grown.volume, record.size)
    switch (plan.do) {
      case 'nothing':
        return undefined
      case 'reportReadOnly':
        if (!record.hasReportedReadOnly) recordEvents(grown.pod, plan.claim, readOnlyVolume(grown.volume))
        record.hasReportedReadOnly = true
        return undefined
      case 'expand':
        return oneAtATime(volumeKey(grown.volume), () => expand(grown, plan, record, signal))
    }
  }

  function recordOf({ volume, publication }: PublishedVolume): VolumeRecord {
    const key = `${publication.uid}/${publication.volume}`
    const before = known.get(key)
    if (before) return before
    for (const old of known.keys()) {
      const at = old.indexOf('/')
      if (!records.publication(old.slice(0, at), old.slice(at + 1))) known.delete(old)
    }
    const size = volume.claim?.status?.capacity?.storage
    const first: VolumeRecord = { size, tries: 0, notBeforeMs: Number.NEGATIVE_INFINITY, hasReportedReadOnly: false }
    known.set(key, first)
    return first
  }

  async function expand(grown: PublishedVolume, plan: Expansion, known: VolumeRecord, signal: AbortSignal) {
    const driver = drivers.get(grown.volume.driver)
    if (!driver) return undefined // its registration wakes the pod
    if (!known.failed || known.failed.size !== plan.size) {
      known.failed = undefined
      known.tries = 0
      known.notBeforeMs = Number.NEGATIVE_INFINITY
    }
    const { failed } = known
    if (failed?.how === 'inUse') return undefined // retried after the next mount
    // Failed with a final error, and the request was lowered: let the controller choose the smaller size.
    if (failed?.how === 'final' && plan.reports === 'state' && isLess(requestedStorage(plan.claim), plan.size)) {
      const message = failureMessage(`${plan.size} failed on the node, and the request was lowered`)
      known.failed = undefined
      await save(plan.claim, nodeInfeasiblePatch({ message }, formatTime(clock.nowMs())))
      return undefined
    }
    const waitMs = known.notBeforeMs - clock.monotonicMs()
    if (waitMs > 0) return waitMs

    let claim = plan.claim
    if (plan.reports === 'state' && resizeStateOf(claim) !== 'NodeResizeInProgress') {
      const started = await save(claim, nodeStartedPatch(), { isConditional: true })
      if (!started) return undefined // conflict: the change wakes the pod
      claim = started
    }
    let secrets: Credentials = {}
    try {
      if (!driver.can.has('EXPAND_VOLUME')) throw notAble(grown.volume)
      const ref = grown.volume.expandSecret
      secrets = ref ? await readCredentials(client, ref, signal) : {}
      await metrics.during(grown.volume.driver, 'volume_fs_resize', () =>
        callDriver(grown, driver, plan.size, secrets, signal),
      )
    } catch (error) {
      if (signal.aborted) throw error
      return handleFailure(error, secrets, { ...grown, plan: { ...plan, claim }, known })
    }
    known.failed = undefined
    known.tries = 0
    known.size = plan.size
    if (plan.reports !== 'nothing' && (await saveExpanded(claim, plan.size))) {
      recordEvents(grown.pod, claim, expandSucceeded(grown.volume))
    }
    return undefined
  }

  async function callDriver(
    { pod, volume, publication }: PublishedVolume,
    driver: RegisteredDriver,
    size: string,
    secrets: Credentials,
    signal: AbortSignal,
  ) {
    return driver.csi.node.nodeExpandVolume(
      {
        volumeId: volume.handle,
        volumePath: publication.target,
        stagingTargetPath: records.stagingOf(volume)?.path ?? '',
        capacityRange: { requiredBytes: quantityToBytes(size) },
        volumeCapability: capabilityOf(volume, { can: driver.can, group: groupOfPod(pod) }),
        secrets: { ...secrets },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  }

  async function handleFailure(
    error: unknown,
    secrets: Credentials,
    { pod, volume, plan, known }: PublishedVolume & { readonly plan: Expansion; readonly known: VolumeRecord },
  ): Promise<number | undefined> {
    const isUnable = error instanceof CsiError && error.codeName === 'UNIMPLEMENTED'
    if (plan.reports === 'nothing' && isUnable) {
      known.size = plan.size // the driver needs no node expansion
      return undefined
    }
    const text = error instanceof CsiError ? error.rpcText : (error as Error).message
    const because = redactCredentials(text, secrets)
    const message = `NodeExpandVolume failed for volume "${volume.volume}" : ${because}`
    events.record(podKind, pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })

    const failure = { message: failureMessage(because) }
    const now = formatTime(clock.nowMs())
    const reports = plan.reports !== 'nothing'
    if (isUncertain(error)) known.failed = { size: plan.size, how: 'uncertain' }
    else if (error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION') {
      known.failed = { size: plan.size, how: 'inUse' }
      if (reports) await save(plan.claim, nodeFailedPatch(failure, now))
      return undefined
    } else if (plan.reports === 'state' && (isInfeasibleExpand(error) || isUnable)) {
      known.failed = undefined
      await save(plan.claim, nodeInfeasiblePatch(failure, now))
      return undefined
    } else {
      known.failed = { size: plan.size, how: 'final' }
      if (reports) await save(plan.claim, nodeFailedPatch(failure, now))
    }
    const afterMs = backoffMs(RETRY, known.tries++, random)
    known.notBeforeMs = clock.monotonicMs() + afterMs
    return afterMs
  }

  /** Retries if a user has edited the claim during the call. */
  async function saveExpanded(claim: Claim, size: string): Promise<boolean> {
    const { namespace, name = '', uid } = claim.metadata
    let now = claim
    for (let edits = 0; edits <= EDITS_MAX; edits++) {
      if (await save(now, completedOnNodePatch(size), { isConditional: true })) return true
      const read = await find(client, persistentVolumeClaimKind, { namespace, name })
      if (!read) return false
      now = read
      const isSame =
        now.metadata.uid === uid &&
        resizeStateOf(now) === resizeStateOf(claim) &&
        allocatedStorage(now) === allocatedStorage(claim)
      if (!isSame) return false
    }
    return false
  }

  /** Undefined: the claim was deleted, or has changed and the write is conditional. */
  async function save(
    claim: Claim,
    { metadata, status }: StatusPatch,
    { isConditional = false } = {},
  ): Promise<Claim | undefined> {
    const { name = '', namespace, uid, resourceVersion } = claim.metadata
    const body = { metadata: { uid, ...(isConditional ? { resourceVersion } : {}), ...metadata }, status }
    const patch = { type: 'strategic', body } as const
    try {
      return await client.patch(persistentVolumeClaimKind, { namespace, name }, patch, { subresource: 'status' })
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return undefined
      throw error
    }
  }

  function recordEvents(pod: Readonly<Pod>, claim: Claim, event: EventDetails): void {
    events.record(podKind, pod, event)
    events.record(persistentVolumeClaimKind, claim, event)
  }
}

const notAble = ({ driver }: CsiVolume): CsiError =>
  new CsiError('UNIMPLEMENTED', `driver ${driver} does not report the capability EXPAND_VOLUME on this node`)

const expandSucceeded = ({ volume, mode }: CsiVolume): EventDetails => ({
  type: 'Normal',
  reason: 'FileSystemResizeSuccessful',
  message: `${mode === 'Block' ? 'MapVolume' : 'MountVolume'}.NodeExpandVolume succeeded for volume "${volume}"`,
})

const readOnlyVolume = ({ volume }: CsiVolume): EventDetails => ({
  type: 'Warning',
  reason: 'FileSystemResizeFailed',
  message: `Requested read-only file system: volume "${volume}" is mounted read-only and cannot be expanded on this node`,
})
