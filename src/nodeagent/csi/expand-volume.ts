// Expands the file system of a mounted volume with NodeExpandVolume, and updates the claim's status. plan-expansion.ts
// decides whether to expand. The volume stays usable after a failure. The size in the driver's response is ignored, because
// a file system is smaller than its device and the claim would never reach its request.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { type KeyedLock, keyedLock } from '../../base/keyed-lock.ts'
import { type Client, find } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain } from '../../csi/index.ts'
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
import type { CsiVolume } from './csi-volume.ts'
import { groupOfPod } from './fs-group-policy.ts'
import { type MountRecords, type Publication, volumeKey } from './mount-records.ts'
import { type NodeExpansionPlan, planNodeExpansion } from './plan-expansion.ts'
import { capabilityOf } from './volume-capability.ts'

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

/** Expands the volume if necessary. Returns the delay in milliseconds until a retry, or undefined if none is needed. */
export type ExpandVolume = (published: PublishedVolume, signal: AbortSignal) => Promise<number | undefined>

const CALL_TIMEOUT_MS = 120_000
const RETRY = { baseMs: 500, maxMs: 122_000 } // the values of the kubelet for volume operations
const EDITS_MAX = 5 // concurrent edits to the claim during the update; beyond this the expansion is repeated

type Claim = Readonly<PersistentVolumeClaim>
type Expansion = Extract<NodeExpansionPlan, { do: 'expand' }>

/** The state of a publication in this run of the agent. */
interface VolumeRecord {
  /** The claim's capacity when the volume was mounted, or the size of the last expansion. */
  size: string | undefined
  /** The size and the kind of the last failure. */
  failure?: { readonly size: string; readonly kind: 'uncertain' | 'final' | 'inUse'; readonly message: string }
  /** Whether no expansion has been planned with a registered driver since the pod started. */
  isPodStarting: boolean
  attempts: number
  notBeforeMs: number
  hasReportedReadOnly: boolean
  /** The claim as the server last returned it. The cache may not have this version yet. */
  returnedClaim?: Claim
}

export function createExpandVolume(deps: ExpandDeps): ExpandVolume {
  const { client, drivers, records, events, metrics, clock, random } = deps
  /** By `uid/volume`. Records of volumes that are no longer mounted are removed when a volume is added. */
  const volumeRecords = new Map<string, VolumeRecord>()
  const lockVolume: KeyedLock = keyedLock()

  return async (published, signal) => {
    const { volume } = published
    const record = getOrCreateRecord(published)
    const { isPodStarting } = record
    const planFor = (current: CsiVolume) => planNodeExpansion(current, { mountedSize: record.size, isPodStarting })
    const plan = planFor(volume)
    // Without the driver, the expansion waits for its registration.
    if (drivers.get(volume.driver)) record.isPodStarting = false
    switch (plan.do) {
      case 'nothing':
        return undefined
      case 'reportReadOnly':
        if (!record.hasReportedReadOnly) recordEvents(published.pod, plan.claim, readOnlyVolume(volume))
        record.hasReportedReadOnly = true
        return undefined
      case 'expand':
        return lockVolume(volumeKey(volume), async () => {
          // Another pod of this node may have expanded the volume since the claim was read from the cache.
          const currentPlan = planFor({ ...volume, claim: newestOf(plan.claim) })
          return currentPlan.do === 'expand' ? expand(published, currentPlan, record, signal) : undefined
        })
    }
  }

  /** Returns the newest version of the claim that is known to this agent. */
  function newestOf(claim: Claim): Claim {
    let newestClaim = claim
    for (const { returnedClaim } of volumeRecords.values()) {
      if (returnedClaim?.metadata.uid !== claim.metadata.uid) continue
      if (returnedClaim && versionOf(returnedClaim) > versionOf(newestClaim)) newestClaim = returnedClaim
    }
    return newestClaim
  }

  function getOrCreateRecord({ volume, publication }: PublishedVolume): VolumeRecord {
    const key = `${publication.uid}/${publication.volumeName}`
    const existingRecord = volumeRecords.get(key)
    if (existingRecord) return existingRecord
    for (const otherKey of volumeRecords.keys()) {
      const slash = otherKey.indexOf('/')
      if (!records.publication(otherKey.slice(0, slash), otherKey.slice(slash + 1))) volumeRecords.delete(otherKey)
    }
    const size = volume.claim?.status?.capacity?.storage
    const record: VolumeRecord = {
      size,
      isPodStarting: true,
      attempts: 0,
      notBeforeMs: Number.NEGATIVE_INFINITY,
      hasReportedReadOnly: false,
    }
    volumeRecords.set(key, record)
    return record
  }

  async function expand(published: PublishedVolume, plan: Expansion, record: VolumeRecord, signal: AbortSignal) {
    const driver = drivers.get(published.volume.driver)
    if (!driver) return undefined // the pod is reconciled again when the driver is registered
    if (!record.failure || record.failure.size !== plan.size) {
      record.failure = undefined
      record.attempts = 0
      record.notBeforeMs = Number.NEGATIVE_INFINITY
    }
    const { failure } = record
    if (failure?.kind === 'inUse') return undefined // retried after the next mount
    // After a final error, if the request has been lowered, let the controller choose the smaller size.
    if (failure?.kind === 'final' && plan.updates === 'state' && isLess(requestedStorage(plan.claim), plan.size)) {
      const message = failureMessage(`${failure.message} (at ${plan.size}; the request was lowered since)`)
      record.failure = undefined
      await save(record, plan.claim, nodeInfeasiblePatch({ message }, formatTime(clock.nowMs())))
      return undefined
    }
    const waitMs = record.notBeforeMs - clock.monotonicMs()
    if (waitMs > 0) return waitMs

    let claim = plan.claim
    if (plan.updates === 'state' && resizeStateOf(claim) !== 'NodeResizeInProgress') {
      const started = await save(record, claim, nodeStartedPatch(), { isConditional: true })
      if (!started) return undefined // after a conflict, the changed claim triggers another reconcile
      claim = started
    }
    try {
      if (!driver.capabilities.has('EXPAND_VOLUME')) throw expansionUnsupported(published.volume)
      const ref = published.volume.expandSecret
      const secrets = ref ? await readCredentials(client, ref, signal) : {}
      await metrics.measure(published.volume.driver, 'volume_fs_resize', () =>
        callDriver(published, driver, plan.size, secrets, signal),
      )
    } catch (error) {
      if (signal.aborted) throw error
      return handleFailure(error, { ...published, plan: { ...plan, claim }, record })
    }
    record.failure = undefined
    record.attempts = 0
    record.size = plan.size
    if (plan.updates !== 'nothing' && (await saveExpanded(record, claim, plan.size))) {
      recordEvents(published.pod, claim, expandSucceeded(published.volume))
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
        volumeCapability: capabilityOf(volume, { capabilities: driver.capabilities, group: groupOfPod(pod) }),
        secrets: { ...secrets },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  }

  async function handleFailure(
    error: unknown,
    { pod, volume, plan, record }: PublishedVolume & { readonly plan: Expansion; readonly record: VolumeRecord },
  ): Promise<number | undefined> {
    const isUnimplemented = error instanceof CsiError && error.codeName === 'UNIMPLEMENTED'
    if (plan.updates === 'nothing' && isUnimplemented) {
      record.size = plan.size // the driver needs no node expansion
      return undefined
    }
    const errorMessage = error instanceof CsiError ? error.rpcText : (error as Error).message
    const message = `NodeExpandVolume failed for volume "${volume.name}" : ${errorMessage}`
    events.record(podKind, pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })

    const failure = { message: failureMessage(errorMessage) }
    const timestampNow = formatTime(clock.nowMs())
    const updatesClaim = plan.updates !== 'nothing'
    if (isUncertain(error)) record.failure = { size: plan.size, kind: 'uncertain', message: errorMessage }
    else if (error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION') {
      record.failure = { size: plan.size, kind: 'inUse', message: errorMessage }
      if (updatesClaim) await save(record, plan.claim, nodeFailedPatch(failure, timestampNow))
      return undefined
    } else if (plan.updates === 'state' && (isInfeasibleExpand(error) || isUnimplemented)) {
      record.failure = undefined
      await save(record, plan.claim, nodeInfeasiblePatch(failure, timestampNow))
      return undefined
    } else {
      record.failure = { size: plan.size, kind: 'final', message: errorMessage }
      if (updatesClaim) await save(record, plan.claim, nodeFailedPatch(failure, timestampNow))
    }
    const delayMs = backoffMs(RETRY, record.attempts++, random)
    record.notBeforeMs = clock.monotonicMs() + delayMs
    return delayMs
  }

  /** Saves the new size. Retries if the claim was edited during the driver call. */
  async function saveExpanded(record: VolumeRecord, claim: Claim, size: string): Promise<boolean> {
    const { namespace, name = '', uid } = claim.metadata
    let currentClaim = claim
    for (let edits = 0; edits <= EDITS_MAX; edits++) {
      if (await save(record, currentClaim, completedOnNodePatch(size), { isConditional: true })) return true
      const stored = await find(client, persistentVolumeClaimKind, { namespace, name })
      if (!stored) return false
      currentClaim = stored
      record.returnedClaim = stored
      const isSameExpansion =
        currentClaim.metadata.uid === uid &&
        resizeStateOf(currentClaim) === resizeStateOf(claim) &&
        allocatedStorage(currentClaim) === allocatedStorage(claim)
      if (!isSameExpansion) return false
    }
    return false
  }

  /** Returns undefined if the claim was deleted, or if it has changed and the write is conditional. */
  async function save(
    record: VolumeRecord,
    claim: Claim,
    { metadata, status }: StatusPatch,
    { isConditional = false } = {},
  ): Promise<Claim | undefined> {
    const { name = '', namespace, uid, resourceVersion } = claim.metadata
    const body = { metadata: { uid, ...(isConditional ? { resourceVersion } : {}), ...metadata }, status }
    const patch = { type: 'strategic', body } as const
    try {
      const saved = await client.patch(persistentVolumeClaimKind, { namespace, name }, patch, { subresource: 'status' })
      record.returnedClaim = saved
      return saved
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

/** NaN, which is not greater than any version, if the server's versions are not numbers. */
const versionOf = ({ metadata }: Claim): number => Number(metadata.resourceVersion)

const expansionUnsupported = ({ driver }: CsiVolume): CsiError =>
  new CsiError('UNIMPLEMENTED', `driver ${driver} does not report the capability EXPAND_VOLUME on this node`)

const expandSucceeded = ({ name, mode }: CsiVolume): EventDetails => ({
  type: 'Normal',
  reason: 'FileSystemResizeSuccessful',
  message: `${mode === 'Block' ? 'MapVolume' : 'MountVolume'}.NodeExpandVolume succeeded for volume "${name}"`,
})

const readOnlyVolume = ({ name }: CsiVolume): EventDetails => ({
  type: 'Warning',
  reason: 'FileSystemResizeFailed',
  message: `Requested read-only file system: volume "${name}" is mounted read-only and cannot be expanded on this node`,
})
