// Grows the file system of a mounted volume when its PV has become larger than its claim knows: the node's part of an
// expansion. The claim's status says when it is the node's turn, and is told how it went.
import { persistentVolumeClaimKind } from '../../api/kinds/claim.ts'
import { podKind } from '../../api/kinds/pod.ts'
import { compareQuantities, quantityToBytes } from '../../api/quantity.ts'
import type { PersistentVolumeClaim } from '../../api/types/claim.ts'
import type { Pod } from '../../api/types/pod.ts'
import type { Client, EventRecorder } from '../../client/index.ts'
import { readCredentials } from '../../controllers/provisioning/csi/secrets.ts'
import { CsiError, isInfeasibleExpand } from '../../csi/index.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { Drivers } from '../registration/drivers.ts'
import type { Books, Publication } from './books.ts'
import { capabilityOf } from './capability.ts'
import type { CsiVolume } from './csi-volume.ts'
import { groupOfPod } from './ownership.ts'

export interface GrowDeps {
  readonly client: Client
  readonly drivers: Drivers
  readonly books: Books
  readonly events: EventRecorder
  readonly metrics: AgentMetrics
}

/** A volume that is mounted for a pod. */
export interface GrownVolume {
  readonly pod: Readonly<Pod>
  readonly volume: CsiVolume
  readonly publication: Publication
}

/** Grows the volume if it is due. Throws what is worth another try; a volume that cannot grow now stays usable. */
export type GrowVolume = (grown: GrownVolume, signal: AbortSignal) => Promise<void>

const CALL_TIMEOUT_MS = 120_000
const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']

export function createGrowVolume(deps: GrowDeps): GrowVolume {
  /** Refused while in use: not asked again on this node until the volume is mounted anew. By `uid/volume size`. */
  const refused = new Set<string>()

  return async ({ pod, volume, publication }, signal) => {
    const target = targetOf(volume)
    const driver = deps.drivers.get(volume.driver)
    if (!target || !driver?.can.has('EXPAND_VOLUME')) return
    const { claim, size } = target
    const attempt = `${publication.uid}/${publication.volume} ${size}`
    if (refused.has(attempt)) return
    await setStatus(deps.client, claim, { state: 'NodeResizeInProgress' })
    try {
      const secrets = volume.expandSecret ? await readCredentials(deps.client, volume.expandSecret, signal) : {}
      await deps.metrics.during(volume.driver, 'volume_fs_resize', () =>
        driver.csi.node.nodeExpandVolume(
          {
            volumeId: volume.handle,
            volumePath: publication.target,
            stagingTargetPath: deps.books.stagingOf(volume)?.path ?? '',
            capacityRange: { requiredBytes: quantityToBytes(size) },
            volumeCapability: capabilityOf(volume, { can: driver.can, group: groupOfPod(pod) }),
            secrets: { ...secrets },
          },
          { timeoutMs: CALL_TIMEOUT_MS, signal },
        ),
      )
    } catch (error) {
      if (signal.aborted) throw error
      await failed(error, { pod, volume, claim, attempt })
      return
    }
    await setStatus(deps.client, claim, { state: null, capacity: size })
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${volume.volume}"`
    const happening = { type: 'Normal', reason: 'FileSystemResizeSuccessful', message } as const
    deps.events.record(podKind, pod, happening)
    deps.events.record(persistentVolumeClaimKind, claim, happening)
  }

  async function failed(
    error: unknown,
    { pod, volume, claim, attempt }: { pod: Readonly<Pod>; volume: CsiVolume; claim: Claim; attempt: string },
  ): Promise<void> {
    const because = error instanceof CsiError ? error.rpcText : (error as Error).message
    const message = `NodeExpandVolume failed for volume "${volume.volume}" : ${because}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })
    if (isInfeasibleExpand(error)) {
      await setStatus(deps.client, claim, { state: 'NodeResizeInfeasible', error: because })
    } else if (error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION') {
      refused.add(attempt)
      await setStatus(deps.client, claim, { error: because })
    } else throw error
  }
}

type Claim = Readonly<PersistentVolumeClaim>

/** What the volume should grow to, if it is this node's turn. */
export function targetOf({ pv, claim, readOnly }: CsiVolume): { claim: Claim; size: string } | undefined {
  const size = pv?.spec?.capacity?.storage
  const known = claim?.status?.capacity?.storage
  if (!claim || !size || !known || readOnly || compareQuantities(known, size) >= 0) return undefined
  const state = claim.status?.allocatedResourceStatuses?.storage
  if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return undefined
  return { claim, size: claim.status?.allocatedResources?.storage ?? size }
}

interface ResizeStatus {
  /** Null: the expansion is over. */
  readonly state?: string | null
  readonly capacity?: string
  readonly error?: string
}

async function setStatus(client: Client, claim: Claim, { state, capacity, error }: ResizeStatus): Promise<void> {
  if (state && state === claim.status?.allocatedResourceStatuses?.storage && error === undefined) return
  const { name = '', namespace = '', uid } = claim.metadata
  const kept = (claim.status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.includes(type))
  const failure = { type: 'NodeResizeError', status: 'True', message: error ?? '' }
  const status = {
    ...(state === undefined ? {} : { allocatedResourceStatuses: { storage: state } }),
    ...(capacity === undefined ? {} : { capacity: { storage: capacity } }),
    ...(state === null ? { conditions: kept.length > 0 ? kept : null } : {}),
    ...(error === undefined
      ? {}
      : { conditions: [...(claim.status?.conditions ?? []).filter(({ type }) => type !== failure.type), failure] }),
  }
  const body = { metadata: { uid }, status }
  await client.patch(persistentVolumeClaimKind, { namespace, name }, { type: 'merge', body }, { subresource: 'status' })
}
