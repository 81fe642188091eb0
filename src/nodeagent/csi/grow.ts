// Grows the file system of a mounted volume when its PV has become larger than its claim knows: the node's part of an
// expansion. The claim's status says when it is the node's turn (grow-plan.ts), and is told how it went. Whatever
// happens, the volume stays as usable as it was. What the driver says it grew to is not asked for: file systems tell
// less than their device has, and a claim that believed it would want to grow for ever.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { type KeyedLock, keyedLock } from '../../base/keyed-lock.ts'
import type { Client } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain, redactCredentials } from '../../csi/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { EventDetails, EventRecorder } from '../../runtime/index.ts'
import { type Credentials, readCredentials } from '../../volumes/credentials.ts'
import {
  completedOnNode,
  failureText,
  nodeFailed,
  nodeInfeasible,
  nodeStarted,
  resizeStateOf,
  type StatusPatch,
  timeText,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { Drivers, RegisteredDriver } from '../registration/drivers.ts'
import { type Books, type Publication, volumeKey } from './books.ts'
import { capabilityOf } from './capability.ts'
import type { CsiVolume } from './csi-volume.ts'
import { type GrowPlan, planGrow } from './grow-plan.ts'
import { groupOfPod } from './ownership.ts'

export interface GrowDeps {
  readonly client: Client
  readonly drivers: Drivers
  readonly books: Books
  readonly events: EventRecorder
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly random: Random
}

/** A volume that is mounted for a pod. */
export interface GrownVolume {
  readonly pod: Readonly<Pod>
  readonly volume: CsiVolume
  readonly publication: Publication
}

/** Grows the volume if it is due. Returns when it wants to be asked again, if it does. */
export type GrowVolume = (grown: GrownVolume, signal: AbortSignal) => Promise<number | undefined>

const CALL_TIMEOUT_MS = 120_000
const RETRY = { baseMs: 500, maxMs: 122_000 } // as the kubelet's, for operations on volumes
const EDITS_MAX = 5 // of the claim in a row, while its new size is being written down; then the node grows it again

type Claim = Readonly<PersistentVolumeClaim>
type Growing = Extract<GrowPlan, { do: 'grow' }>

/** What is known of a publication in this life of the agent. */
interface Seen {
  /** What its claim had when it was first looked at. */
  size: string | undefined
  /** The size it last failed for, and how. */
  failed?: { readonly size: string; readonly how: 'uncertain' | 'final' | 'inUse' }
  tries: number
  notBeforeMs: number
  toldReadOnly: boolean
}

export function createGrowVolume(deps: GrowDeps): GrowVolume {
  const { client, drivers, books, events, metrics, clock, random } = deps
  /** By `uid/volume`; bounded by what is mounted, and swept when something new is. */
  const seen = new Map<string, Seen>()
  const oneAtATime: KeyedLock = keyedLock()

  return async (grown, signal) => {
    const known = seenOf(grown)
    const plan = planGrow(grown.volume, known.size)
    switch (plan.do) {
      case 'nothing':
        return undefined
      case 'tellReadOnly':
        if (!known.toldReadOnly) tell(grown.pod, plan.claim, readOnlyTelling(grown.volume))
        known.toldReadOnly = true
        return undefined
      case 'grow':
        return oneAtATime(volumeKey(grown.volume), () => grow(grown, plan, known, signal))
    }
  }

  function seenOf({ volume, publication }: GrownVolume): Seen {
    const key = `${publication.uid}/${publication.volume}`
    const before = seen.get(key)
    if (before) return before
    for (const old of seen.keys()) {
      const at = old.indexOf('/')
      if (!books.publication(old.slice(0, at), old.slice(at + 1))) seen.delete(old)
    }
    const size = volume.claim?.status?.capacity?.storage
    const first: Seen = { size, tries: 0, notBeforeMs: Number.NEGATIVE_INFINITY, toldReadOnly: false }
    seen.set(key, first)
    return first
  }

  async function grow(grown: GrownVolume, plan: Growing, known: Seen, signal: AbortSignal) {
    const driver = drivers.get(grown.volume.driver)
    if (!driver) return undefined // when it is registered, everyone is asked again
    if (!known.failed || known.failed.size !== plan.size) {
      known.failed = undefined
      known.tries = 0
      known.notBeforeMs = Number.NEGATIVE_INFINITY
    }
    const { failed } = known
    if (failed?.how === 'inUse') return undefined // not until it is mounted anew
    // The last word was no, and the user wants less by now: the controller may choose that.
    if (failed?.how === 'final' && plan.tells === 'state' && isLess(requestedStorage(plan.claim), plan.size)) {
      const message = failureText(`${plan.size} failed on the node, and less is asked for by now`)
      known.failed = undefined
      await save(plan.claim, nodeInfeasible({ message }, timeText(clock.nowMs())))
      return undefined
    }
    const waitMs = known.notBeforeMs - clock.monotonicMs()
    if (waitMs > 0) return waitMs

    let claim = plan.claim
    if (plan.tells === 'state' && resizeStateOf(claim) !== 'NodeResizeInProgress') {
      const started = await save(claim, nodeStarted(), { isConditional: true })
      if (!started) return undefined // it changed meanwhile, and with that everyone is asked again
      claim = started
    }
    let secrets: Credentials = {}
    try {
      if (!driver.can.has('EXPAND_VOLUME')) throw notAble(grown.volume)
      const ref = grown.volume.expandSecret
      secrets = ref ? await readCredentials(client, ref, signal) : {}
      await metrics.during(grown.volume.driver, 'volume_fs_resize', () =>
        ask(grown, driver, plan.size, secrets, signal),
      )
    } catch (error) {
      if (signal.aborted) throw error
      return failedWith(error, secrets, { ...grown, plan: { ...plan, claim }, known })
    }
    known.failed = undefined
    known.tries = 0
    known.size = plan.size
    if (plan.tells !== 'nobody' && (await saveGrown(claim, plan.size))) {
      tell(grown.pod, claim, successTelling(grown.volume))
    }
    return undefined
  }

  async function ask(
    { pod, volume, publication }: GrownVolume,
    driver: RegisteredDriver,
    size: string,
    secrets: Credentials,
    signal: AbortSignal,
  ) {
    return driver.csi.node.nodeExpandVolume(
      {
        volumeId: volume.handle,
        volumePath: publication.target,
        stagingTargetPath: books.stagingOf(volume)?.path ?? '',
        capacityRange: { requiredBytes: quantityToBytes(size) },
        volumeCapability: capabilityOf(volume, { can: driver.can, group: groupOfPod(pod) }),
        secrets: { ...secrets },
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal },
    )
  }

  async function failedWith(
    error: unknown,
    secrets: Credentials,
    { pod, volume, plan, known }: GrownVolume & { readonly plan: Growing; readonly known: Seen },
  ): Promise<number | undefined> {
    const isUnable = error instanceof CsiError && error.codeName === 'UNIMPLEMENTED'
    if (plan.tells === 'nobody' && isUnable) {
      known.size = plan.size // there is nothing to grow on nodes
      return undefined
    }
    const text = error instanceof CsiError ? error.rpcText : (error as Error).message
    const because = redactCredentials(text, secrets)
    const message = `NodeExpandVolume failed for volume "${volume.volume}" : ${because}`
    events.record(podKind, pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })

    const failure = { message: failureText(because) }
    const now = timeText(clock.nowMs())
    const tells = plan.tells !== 'nobody'
    if (isUncertain(error)) known.failed = { size: plan.size, how: 'uncertain' }
    else if (error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION') {
      known.failed = { size: plan.size, how: 'inUse' }
      if (tells) await save(plan.claim, nodeFailed(failure, now))
      return undefined
    } else if (plan.tells === 'state' && (isInfeasibleExpand(error) || isUnable)) {
      known.failed = undefined
      await save(plan.claim, nodeInfeasible(failure, now))
      return undefined
    } else {
      known.failed = { size: plan.size, how: 'final' }
      if (tells) await save(plan.claim, nodeFailed(failure, now))
    }
    const afterMs = backoffMs(RETRY, known.tries++, random)
    known.notBeforeMs = clock.monotonicMs() + afterMs
    return afterMs
  }

  /** An edit of the request while the node was at work changes nothing about what it did. */
  async function saveGrown(claim: Claim, size: string): Promise<boolean> {
    const { namespace = '', name = '', uid } = claim.metadata
    let now = claim
    for (let edits = 0; edits <= EDITS_MAX; edits++) {
      if (await save(now, completedOnNode(size), { isConditional: true })) return true
      try {
        now = await client.get(persistentVolumeClaimKind, { namespace, name })
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return false
        throw error
      }
      const isSame =
        now.metadata.uid === uid &&
        resizeStateOf(now) === resizeStateOf(claim) &&
        allocatedStorage(now) === allocatedStorage(claim)
      if (!isSame) return false
    }
    return false
  }

  /** Undefined: the claim is gone, or no longer as it was read where that is asked for. */
  async function save(
    claim: Claim,
    { metadata, status }: StatusPatch,
    { isConditional = false } = {},
  ): Promise<Claim | undefined> {
    const { name = '', namespace = '', uid, resourceVersion } = claim.metadata
    const body = { metadata: { uid, ...(isConditional ? { resourceVersion } : {}), ...metadata }, status }
    const patch = { type: 'strategic', body } as const
    try {
      return await client.patch(persistentVolumeClaimKind, { namespace, name }, patch, { subresource: 'status' })
    } catch (error) {
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return undefined
      throw error
    }
  }

  function tell(pod: Readonly<Pod>, claim: Claim, happening: EventDetails): void {
    events.record(podKind, pod, happening)
    events.record(persistentVolumeClaimKind, claim, happening)
  }
}

const notAble = ({ driver }: CsiVolume): CsiError =>
  new CsiError('UNIMPLEMENTED', `driver ${driver} does not report the capability EXPAND_VOLUME on this node`)

const successTelling = ({ volume, mode }: CsiVolume): EventDetails => ({
  type: 'Normal',
  reason: 'FileSystemResizeSuccessful',
  message: `${mode === 'Block' ? 'MapVolume' : 'MountVolume'}.NodeExpandVolume succeeded for volume "${volume}"`,
})

const readOnlyTelling = ({ volume }: CsiVolume): EventDetails => ({
  type: 'Warning',
  reason: 'FileSystemResizeFailed',
  message: `Requested read-only file system: volume "${volume}" is mounted for reading only and does not grow here`,
})
