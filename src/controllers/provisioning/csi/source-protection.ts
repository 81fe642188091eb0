// Removes the finalizer that clone-source.ts and snapshot-source.ts set on data sources. From a snapshot, it is removed once no
// pending claim is restored from the snapshot; from a source claim, only if the claim is also being deleted. Changes to source
// claims and to claims that refer to a source trigger a reconcile. Snapshots are not watched: all of them are listed at the
// start and every few minutes, and those with the finalizer are enqueued.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isConflict, isForbidden, isNotFound } from '../../../api/status-error.ts'
import { type Client, keyOfObject, refOfKey } from '../../../client/index.ts'
import type { ControllerDeps } from '../../../runtime/controller-deps.ts'
import {
  backOff,
  type Cache,
  createController,
  done,
  type Outcome,
  source,
  stuck,
  type WorkQueue,
} from '../../../runtime/index.ts'
import type { Claim } from '../../../volumes/matching.ts'
import { CLONE_FINALIZER } from './clone-source.ts'
import { dataSourceOf } from './data-source.ts'
import { PreparationError } from './preparation-error.ts'
import { volumeSnapshotKind } from './snapshot-kinds.ts'
import { SNAPSHOT_FINALIZER } from './snapshot-source.ts'
import { removeFinalizer } from './source-finalizer.ts'

export interface SourceProtectionOptions {
  /** Default: 1. */
  readonly workers?: number
  /** Interval for listing snapshots with a leftover finalizer. If 0, they are listed only at the start. Default: 5 min. */
  readonly sweepIntervalMs?: number
}

const SWEEP_INTERVAL_MS = 300_000
const SNAPSHOTS_PER_PAGE = 500
const BY_CLONE_SOURCE = 'clone source'
const BY_SNAPSHOT = 'snapshot source'

export function createSourceProtection(deps: ControllerDeps, options: SourceProtectionOptions = {}) {
  const { client, caches, clock, random, log, metrics } = deps
  const { workers = 1, sweepIntervalMs = SWEEP_INTERVAL_MS } = options
  const claims = caches.of(persistentVolumeClaimKind)
  claims.addIndex(BY_CLONE_SOURCE, cloneSourceKeys)
  claims.addIndex(BY_SNAPSHOT, snapshotKeys)
  const sharedOptions = { clock, random, log, workers, metrics, workerBudget: deps.workerBudget }
  const cloneController = createController({
    ...sharedOptions,
    name: 'clone-sources',
    operation: { component: 'provisioner', name: 'ReleaseSource' },
    sources: [
      source({ cache: claims, keysOf: (claim) => (isAwaitingRelease(claim) ? [keyOfObject(claim)] : []) }),
      source({ cache: claims, keysOf: cloneSourceKeys }),
    ],
    reconcile: (key, signal) => releaseCloneSource(key, { client, claims }, signal),
  })
  const snapshotController = createController({
    ...sharedOptions,
    name: 'snapshot-sources',
    sources: [source({ cache: claims, keysOf: snapshotKeys })],
    reconcile: (key, signal) => releaseSnapshot(key, { client, claims }, signal),
  })
  const controllers = [cloneController, snapshotController]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await enqueueProtectedSnapshots(client, snapshotController.queue, signal)
      } catch (error) {
        if (!signal.aborted) log.info({ err: error }, 'listing snapshots with a leftover finalizer failed')
      }
      if (sweepIntervalMs === 0) return
      await clock.sleep(sweepIntervalMs, signal).catch(() => {})
    }
  }

  return {
    queues: controllers.map(({ queue }) => queue),
    run: async (signal: AbortSignal) => {
      await Promise.all([...controllers.map((controller) => controller.run(signal)), sweep(signal)])
    },
  }
}

const isAwaitingRelease = ({ metadata }: Claim): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(CLONE_FINALIZER) ?? false)

const cloneSourceKeys = (claim: Claim): string[] => sourceKeysOf(claim, 'clone')
const snapshotKeys = (claim: Claim): string[] => sourceKeysOf(claim, 'snapshot')

function sourceKeysOf(claim: Claim, type: 'clone' | 'snapshot'): string[] {
  try {
    const dataSource = dataSourceOf(claim)
    return dataSource?.is === type ? [`${dataSource.namespace}/${dataSource.name}`] : []
  } catch (error) {
    if (error instanceof PreparationError) return []
    throw error
  }
}

interface SourceDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
}

/** Removes the finalizer only from a claim that is being deleted, because the next clone of an existing claim needs it again. */
async function releaseCloneSource(key: string, { client, claims }: SourceDeps, signal: AbortSignal): Promise<Outcome> {
  const sourceClaim = claims.get(key)
  if (!sourceClaim || !isAwaitingRelease(sourceClaim)) return done
  const clone =
    findPendingClaim(claims.byIndex(BY_CLONE_SOURCE, key)) ??
    (await findPendingClaimOnServer(client, key, cloneSourceKeys, signal))
  if (clone) return stuck(`claim ${keyOfObject(clone)} is being cloned from claim ${key}`)
  return tryRelease(() => removeFinalizer(client, persistentVolumeClaimKind, sourceClaim, CLONE_FINALIZER, signal))
}

async function releaseSnapshot(key: string, { client, claims }: SourceDeps, signal: AbortSignal): Promise<Outcome> {
  const restoringClaim = findPendingClaim(claims.byIndex(BY_SNAPSHOT, key))
  if (restoringClaim) return stuck(`claim ${keyOfObject(restoringClaim)} is being restored from snapshot ${key}`)
  if (!(await client.serves(volumeSnapshotKind))) return done
  return tryRelease(async () => {
    const snapshot = await client.get(volumeSnapshotKind, refOfKey(key), { signal })
    if (!snapshot.metadata.finalizers?.includes(SNAPSHOT_FINALIZER)) return
    // If a claim is found, its next change triggers another reconcile.
    if (await findPendingClaimOnServer(client, key, snapshotKeys, signal)) return
    await removeFinalizer(client, volumeSnapshotKind, snapshot, SNAPSHOT_FINALIZER, signal)
  })
}

/** Lists claims from the server, because the cache may not contain a claim that another provisioner has just started to fill. */
async function findPendingClaimOnServer(
  client: Client,
  key: string,
  sourceKeys: (claim: Claim) => string[],
  signal: AbortSignal,
) {
  const { items } = await client.list(persistentVolumeClaimKind, { namespace: refOfKey(key).namespace ?? '', signal })
  return findPendingClaim(items.filter((claim) => sourceKeys(claim).includes(key)))
}

const findPendingClaim = (claims: readonly Claim[]) =>
  claims.find(({ status }) => (status?.phase ?? 'Pending') === 'Pending')

async function tryRelease(release: () => Promise<void>): Promise<Outcome> {
  try {
    await release()
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the source changed during the reconcile')
    if (isForbidden(error)) return stuck(`cannot remove the finalizer of the source: ${(error as Error).message}`)
    throw error
  }
}

async function enqueueProtectedSnapshots(client: Client, queue: WorkQueue, signal: AbortSignal): Promise<void> {
  if (!(await client.serves(volumeSnapshotKind))) return
  let continueToken: string | undefined
  do {
    const page = await client.list(volumeSnapshotKind, {
      limit: SNAPSHOTS_PER_PAGE,
      signal,
      ...(continueToken ? { continueToken } : {}),
    })
    for (const snapshot of page.items) {
      if (snapshot.metadata.finalizers?.includes(SNAPSHOT_FINALIZER)) queue.add(keyOfObject(snapshot))
    }
    continueToken = page.continueToken
  } while (continueToken)
}
