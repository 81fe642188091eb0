// Releases a provisioner's claims before another program replaces it: removes the finalizers (intent.ts), which only
// Stowage removes, and the entries of its journal. A claim that is not being deleted loses nothing, because the next provisioner
// repeats the request under the same volume name. A deleted claim without a PersistentVolume keeps its finalizer or entry: a
// volume may exist in the storage, and the next provisioner would not look for it.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isMissingRight, isNotFound } from '../../api/status-error.ts'
import { find } from '../../client/find.ts'
import { type Client, keyOfObject, type ObjectRef } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { PROVISIONER, PROVISIONER_BETA } from '../../volumes/names.ts'
import { INTENT_PREFIX, intentOf } from '../../volumes/provisioning-intent.ts'
import { isBeingDeleted, refOf } from './intent.ts'
import { formatEntries, parseEntries } from './intent-entries.ts'
import { annotationText, INTENTS_ANNOTATION } from './intent-journal.ts'

export interface ReleasedClaims {
  /** Keys of the claims whose finalizer or entry was removed. */
  readonly released: readonly string[]
  readonly unreleased: readonly UnreleasedClaim[]
}

interface UnreleasedClaim {
  readonly key: string
  readonly uid: string
  /** What records the intent: a finalizer, or an entry of the journal. */
  readonly intent: string
}

export interface ReleaseOptions {
  readonly provisionerName: string
  /** The Lease of the journal (intent-journal.ts). */
  readonly intentLease: ObjectRef
  readonly signal: AbortSignal
}

const PAGE_SIZE = 500
const CONFLICTS_MAX = 10

export async function releaseClaims(
  client: Client,
  { provisionerName, intentLease, signal }: ReleaseOptions,
): Promise<ReleasedClaims> {
  /** Uids of claims that have a volume or can be provisioned by the next provisioner. */
  const safeUids = new Set<string>()
  for await (const { spec } of listAll((page) => client.list(persistentVolumeKind, page))) {
    if (spec?.claimRef?.uid) safeUids.add(spec.claimRef.uid)
  }
  const released: string[] = []
  const unreleased: UnreleasedClaim[] = []
  for await (const claim of listAll((page) => client.list(persistentVolumeClaimKind, page))) {
    signal.throwIfAborted()
    if (!isBeingDeleted(claim)) safeUids.add(claim.metadata.uid)
    const finalizer = intentIn(claim, provisionerName)
    if (finalizer === undefined) continue
    const { uid } = claim.metadata
    const key = keyOfObject(claim)
    if (!safeUids.has(uid)) unreleased.push({ key, uid, intent: `the finalizer "${finalizer}"` })
    else if (await removeFinalizer(client, claim, finalizer, signal)) released.push(key)
  }
  const entries = await releaseEntries(client, { intentLease, safeUids, signal })
  return {
    released: [...new Set([...released, ...entries.released])],
    unreleased: [...unreleased, ...entries.unreleased],
  }
}

async function releaseEntries(
  client: Client,
  {
    intentLease,
    safeUids,
    signal,
  }: Pick<ReleaseOptions, 'intentLease' | 'signal'> & { readonly safeUids: ReadonlySet<string> },
): Promise<ReleasedClaims> {
  const lease = await find(client, leaseKind, intentLease, { signal }).catch((error: unknown) => {
    if (isMissingRight(error)) return undefined // without permission, no journal was used
    throw error
  })
  const place = annotationText(intentLease)
  const entries = parseEntries(lease?.metadata.annotations?.[INTENTS_ANNOTATION], place)
  const released: string[] = []
  const unreleased: UnreleasedClaim[] = []
  for (const [uid, { claim }] of entries) {
    const key = keyOfObject(claim)
    if (safeUids.has(uid)) {
      entries.delete(uid)
      released.push(key)
    } else unreleased.push({ key, uid, intent: `the entry "${uid}" of ${place}` })
  }
  if (lease && released.length > 0) {
    const annotations = { ...lease.metadata.annotations, [INTENTS_ANNOTATION]: formatEntries(entries) }
    await client.update(leaseKind, { ...lease, metadata: { ...lease.metadata, annotations } }, { signal })
  }
  return { released, unreleased }
}

/** Returns the intent of this provisioner on the claim. It contains a node name if each node runs its own instance. */
function intentIn(
  { metadata: { annotations = {}, finalizers = [] } }: Claim,
  provisionerName: string,
): string | undefined {
  const isOwn = [PROVISIONER, PROVISIONER_BETA].some((annotation) => annotations[annotation] === provisionerName)
  return finalizers.find((name) => (isOwn ? name.startsWith(INTENT_PREFIX) : name === intentOf(provisionerName)))
}

/** Updates the claim, because the role of external-provisioner does not allow patch. Returns false if it was deleted. */
async function removeFinalizer(client: Client, claim: Claim, finalizer: string, signal: AbortSignal): Promise<boolean> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      const current = await client.get(persistentVolumeClaimKind, refOf(claim), { signal })
      if (current.metadata.uid !== claim.metadata.uid) return false
      const finalizers = current.metadata.finalizers?.filter((name) => name !== finalizer)
      await client.update(
        persistentVolumeClaimKind,
        { ...current, metadata: { ...current.metadata, finalizers } },
        { signal },
      )
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      if (!isConflict(error) || conflicts >= CONFLICTS_MAX) throw error
    }
  }
}

interface Page<T> {
  readonly items: readonly T[]
  readonly continueToken?: string
}

async function* listAll<T>(
  list: (page: { readonly limit: number; readonly continueToken?: string }) => Promise<Page<T>>,
): AsyncGenerator<T> {
  for (let continueToken: string | undefined; ; ) {
    const page = await list({ limit: PAGE_SIZE, continueToken })
    yield* page.items
    continueToken = page.continueToken
    if (!continueToken) return
  }
}
