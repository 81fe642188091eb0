// Decides which claims belong to this instance of a per-node provisioner. A claim with a selected node belongs to the
// instance of that node. A claim with immediate binding belongs to the first instance that sets its own node as the
// selected node. Each instance waits for a random delay and does not write if its driver reports too little capacity.

import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import type { Claim } from '../../../volumes/matching.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import type { Provisioner } from '../provisioner.ts'
import type { NodeDeployment } from './options.ts'

type Candidate = Parameters<NonNullable<Provisioner['accepts']>>[0]

export interface NodeSelectionDeps {
  readonly node: NodeDeployment
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Whether the allowed topologies of the class include this node. */
  isNodeAllowed(candidate: Candidate): boolean
  /** Whether the driver reports enough capacity. Throws if the capacity is unknown. */
  hasCapacity(candidate: Candidate, signal: AbortSignal): Promise<boolean>
}

/** Maximum number of claims with a backoff. Beyond it, the backoff of the oldest claim starts over. */
const CLAIMS_MAX = 10_000
const POLLS_PER_DELAY = 100
const POLL_INTERVAL_MS_MIN = 10

export const selectedNodeOf = ({ metadata }: Claim): string => metadata.annotations?.[SELECTED_NODE] ?? ''

export function createNodeSelection(deps: NodeSelectionDeps): { accepts: NonNullable<Provisioner['accepts']> } {
  const { node, client, claims, clock, random, log } = deps
  const attempts = new Map<string, number>()

  /**
   * Whether the claim belongs to this node. Returns false after it has set this node, because that change triggers the next
   * reconcile. Throws to retry.
   */
  async function accepts(candidate: Candidate, signal: AbortSignal): Promise<boolean> {
    const selectedNode = selectedNodeOf(candidate.claim)
    if (selectedNode) return selectedNode === node.name
    const { volumeBindingMode = 'Immediate' } = candidate.storageClass
    if (!node.immediateBinding || volumeBindingMode !== 'Immediate' || !deps.isNodeAllowed(candidate)) return false
    await selectOwnNode(candidate, signal)
    return false
  }

  async function selectOwnNode(candidate: Candidate, signal: AbortSignal): Promise<void> {
    const { uid = '', name } = candidate.claim.metadata
    for (;;) {
      const currentClaim = await waitForDelay(candidate.claim, signal)
      if (!currentClaim) return void attempts.delete(uid) // another node was selected, or the claim was deleted
      if (!(await mayHaveCapacity(candidate, signal))) {
        throw new Error(
          `node ${node.name} has no capacity for claim ${name} now, and no other node has been selected yet`,
        )
      }
      if (await setSelectedNode(currentClaim, signal)) return void attempts.delete(uid)
    }
  }

  async function waitForDelay(claim: Claim, signal: AbortSignal): Promise<Claim | undefined> {
    const untilMs = clock.monotonicMs() + nextDelayMs(claim.metadata.uid)
    const pollIntervalMs = Math.max(node.baseDelayMs / POLLS_PER_DELAY, POLL_INTERVAL_MS_MIN)
    for (;;) {
      const remainingMs = untilMs - clock.monotonicMs()
      if (remainingMs > 0) await clock.sleep(Math.min(pollIntervalMs, remainingMs), signal)
      const { namespace, name = '' } = claim.metadata
      const currentClaim = claims.get({ namespace, name })
      if (currentClaim?.metadata.uid !== claim.metadata.uid || selectedNodeOf(currentClaim!)) return undefined
      if (remainingMs <= 0) return currentClaim
    }
  }

  function nextDelayMs(uid: string): number {
    const previousAttempts = attempts.get(uid) ?? 0
    attempts.delete(uid)
    attempts.set(uid, previousAttempts + 1)
    if (attempts.size > CLAIMS_MAX) attempts.delete(attempts.keys().next().value!)
    const fullMs = Math.min(node.baseDelayMs * 2 ** Math.min(previousAttempts, 30), node.maxDelayMs)
    return Math.max(0, fullMs - random() * node.baseDelayMs)
  }

  /**
   * Whether the node has enough capacity according to the driver. Returns true if the capacity is unknown: if it is too
   * small, CreateVolume fails.
   */
  async function mayHaveCapacity(candidate: Candidate, signal: AbortSignal): Promise<boolean> {
    try {
      return await deps.hasCapacity(candidate, signal)
    } catch (error) {
      log.info(
        { err: error, claim: candidate.claim.metadata.name },
        'the capacity for the claim is unknown; the node is selected anyway',
      )
      return true
    }
  }

  async function setSelectedNode(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { namespace, name, uid, resourceVersion } = claim.metadata
    const body = { metadata: { uid, resourceVersion, annotations: { [SELECTED_NODE]: node.name } } }
    try {
      await client.patch(persistentVolumeClaimKind, { namespace, name }, { type: 'merge', body }, { signal })
      return true
    } catch (error) {
      if (isNotFound(error)) return true
      if (isConflict(error)) return false // the claim changed and must be read again
      throw error
    }
  }

  return { accepts }
}
