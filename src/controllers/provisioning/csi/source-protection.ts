// Removes the finalizer that clone-source.ts and snapshot-source.ts set on data sources, once no volume is being created
// from them. Triggered by the source and by the claims that name it. Snapshots are not watched: leftovers of other
// processes are listed at the start and every few minutes.

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
import { Refusal } from './refusal.ts'
import { volumeSnapshotKind } from './snapshot-kinds.ts'
import { SNAPSHOT_FINALIZER } from './snapshot-source.ts'
import { removeFinalizer } from './source-finalizer.ts'

export interface SourceProtectionOptions {
  /** Default 1. */
  readonly workers?: number
  /** Interval of listing snapshots with a leftover finalizer; 0: only at the start. Default 5 min. */
  readonly sweepIntervalMs?: number
}

const SWEEP_MS = 300_000
const SNAPSHOTS_PER_PAGE = 500
const BY_CLONE_SOURCE = 'clone source'
const BY_SNAPSHOT = 'snapshot source'

export function createSourceProtection(deps: ControllerDeps, options: SourceProtectionOptions = {}) {
  const { client, caches, clock, random, log, metrics } = deps
  const { workers = 1, sweepIntervalMs = SWEEP_MS } = options
  const claims = caches.of(persistentVolumeClaimKind)
  claims.addIndex(BY_CLONE_SOURCE, cloneSources)
  claims.addIndex(BY_SNAPSHOT, snapshotSources)
  const common = { clock, random, log, workers, metrics }
  const ofClones = createController({
    ...common,
    name: 'clone-sources',
    sources: [
      source({ cache: claims, keysOf: (claim) => (isHeld(claim) ? [keyOfObject(claim)] : []) }),
      source({ cache: claims, keysOf: cloneSources }),
    ],
    reconcile: (key, signal) => letCloneSourceGo(key, { client, claims }, signal),
  })
  const ofSnapshots = createController({
    ...common,
    name: 'snapshot-sources',
    sources: [source({ cache: claims, keysOf: snapshotSources })],
    reconcile: (key, signal) => letSnapshotGo(key, { client, claims }, signal),
  })
  const controllers = [ofClones, ofSnapshots]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await addHeldSnapshots(client, ofSnapshots.queue, signal)
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

const isHeld = ({ metadata }: Claim): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(CLONE_FINALIZER) ?? false)

const cloneSources = (claim: Claim): string[] => sourcesOf(claim, 'clone')
const snapshotSources = (claim: Claim): string[] => sourcesOf(claim, 'snapshot')

function sourcesOf(claim: Claim, wanted: 'clone' | 'snapshot'): string[] {
  try {
    const from = dataSourceOf(claim)
    return from?.is === wanted ? [`${from.namespace}/${from.name}`] : []
  } catch (error) {
    if (error instanceof Refusal) return []
    throw error
  }
}

interface SourceDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
}

/** A claim keeps the finalizer until it is deleted, because the next clone would need it again. */
async function letCloneSourceGo(key: string, { client, claims }: SourceDeps, signal: AbortSignal): Promise<Outcome> {
  const from = claims.get(key)
  if (!from || !isHeld(from)) return done
  const waiting =
    cloneInProgress(claims.byIndex(BY_CLONE_SOURCE, key)) ?? (await lateCopy(client, key, cloneSources, signal))
  if (waiting) return stuck(`claim ${keyOfObject(waiting)} is being copied from it`)
  return released(() => removeFinalizer(client, persistentVolumeClaimKind, from, CLONE_FINALIZER, signal))
}

async function letSnapshotGo(key: string, { client, claims }: SourceDeps, signal: AbortSignal): Promise<Outcome> {
  const waiting = cloneInProgress(claims.byIndex(BY_SNAPSHOT, key))
  if (waiting) return stuck(`claim ${keyOfObject(waiting)} is being filled from it`)
  if (!(await client.serves(volumeSnapshotKind))) return done
  return released(async () => {
    const snapshot = await client.get(volumeSnapshotKind, refOfKey(key), { signal })
    if (!snapshot.metadata.finalizers?.includes(SNAPSHOT_FINALIZER)) return
    if (await lateCopy(client, key, snapshotSources, signal)) return // its change triggers another reconcile
    await removeFinalizer(client, volumeSnapshotKind, snapshot, SNAPSHOT_FINALIZER, signal)
  })
}

/** Reads from the server: the cache may not show a clone that another provisioner has just started. */
async function lateCopy(client: Client, key: string, sourcesIn: (claim: Claim) => string[], signal: AbortSignal) {
  const { items } = await client.list(persistentVolumeClaimKind, { namespace: refOfKey(key).namespace ?? '', signal })
  return cloneInProgress(items.filter((claim) => sourcesIn(claim).includes(key)))
}

const cloneInProgress = (claims: readonly Claim[]) =>
  claims.find(({ status }) => (status?.phase ?? 'Pending') === 'Pending')

async function released(release: () => Promise<void>): Promise<Outcome> {
  try {
    await release()
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the source changed during the reconcile')
    if (isForbidden(error)) return stuck(`cannot remove the finalizer: ${(error as Error).message}`)
    throw error
  }
}

async function addHeldSnapshots(client: Client, queue: WorkQueue, signal: AbortSignal): Promise<void> {
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
