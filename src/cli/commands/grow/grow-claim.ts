// Expands one claim: writes the size with the resourceVersion that was read, and reports its status. The plan and the meaning
// of a status are plan.ts.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectRef } from '../../../client/index.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import { type ClaimStatus, type ClaimWork, type FinalStatus, latestWarning } from '../../bulk/index.ts'
import { checkGrowth, type GrowPlan, type GrowTarget, planGrowth } from './plan.ts'
import { GROW_RECORD, recordOf, textOfRecord } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

const WRITER = 'stowage-grow'
/** Conflicts before giving up on a claim that another client keeps changing. */
const CONFLICTS_MAX = 10

export interface GrowingClaim extends ClaimWork {
  /** The plan when the command started. */
  readonly plan: GrowPlan
}

export function growingClaim(claim: Claim, wish: GrowTarget, client: Client): GrowingClaim {
  const { namespace = '', name = '' } = claim.metadata
  const ref = { namespace, name }
  const plan = planGrowth(claim, wish)
  let to = 'to' in plan ? plan.to : ''

  return {
    key: keyOfObject(claim),
    plan,
    async start(signal) {
      for (let conflicts = 0; ; conflicts++) {
        const now = await client.get(persistentVolumeClaimKind, ref, { signal })
        const { uid, resourceVersion: version = '' } = now.metadata
        if (uid !== claim.metadata.uid) return { is: 'failed', message: 'it was deleted and recreated' }
        const next = planGrowth(now, wish)
        if ('to' in next) to = next.to
        switch (next.do) {
          case 'refuse':
            return { is: 'failed', message: next.because }
          case 'nothing':
            return hasAlready(next)
          case 'follow':
            return { version }
        }
        try {
          return { version: (await ask(client, now, next, { signal })).metadata.resourceVersion ?? '' }
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== 409 || conflicts >= CONFLICTS_MAX) throw error
        }
      }
    },
    async check(now) {
      const standing = checkGrowth(now, to)
      return standing.is === 'waits for a node' ? whoGrowsTheFileSystem(client, now!, to) : standing
    },
    explain: () => latestWarning(client, ref),
  }
}

export const hasAlready = ({ from }: { readonly from: string }): FinalStatus => ({
  is: 'nothing',
  message: `has ${from} already`,
})

/** A dry run on the server. */
export const tryGrowth = (client: Client, claim: Claim, plan: Extract<GrowPlan, { do: 'grow' }>): Promise<Claim> =>
  ask(client, claim, plan, { dryRun: true })

function ask(
  client: Client,
  { metadata: { namespace = '', name = '', uid, resourceVersion } }: Claim,
  { to, record }: Extract<GrowPlan, { do: 'grow' }>,
  options: { readonly dryRun?: boolean; readonly signal?: AbortSignal },
): Promise<Claim> {
  const annotations = record === undefined ? {} : { [GROW_RECORD]: record && textOfRecord(record) }
  const body = {
    metadata: { uid, resourceVersion, annotations },
    spec: { resources: { requests: { storage: to } } },
  }
  const patch = { type: 'merge', body } as const
  return client.patch(persistentVolumeClaimKind, { namespace, name }, patch, { fieldManager: WRITER, ...options })
}

/** All claims have grown: a later run starts a new operation. */
export async function closeRecord(client: Client, ref: ObjectRef): Promise<void> {
  const claim = await client.get(persistentVolumeClaimKind, ref)
  const record = recordOf(claim)
  if (record === undefined || record === 'unreadable' || record.closed) return
  const { uid } = claim.metadata
  const body = { metadata: { uid, annotations: { [GROW_RECORD]: textOfRecord({ ...record, closed: true }) } } }
  await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, { fieldManager: WRITER })
}

/** The storage has grown. Its file system does when a pod uses it; without one there is nothing to wait for. */
async function whoGrowsTheFileSystem(client: Client, claim: Claim, to: string): Promise<ClaimStatus> {
  const key = keyOfObject(claim)
  const { namespace = '' } = claim.metadata
  try {
    const { items } = await client.list(podKind, { namespace })
    const user = items.find(
      (pod) =>
        claimsOfPod(pod).includes(key) &&
        pod.spec?.nodeName &&
        pod.status?.phase !== 'Succeeded' &&
        pod.status?.phase !== 'Failed',
    )
    if (user) return { is: 'working', message: `node ${user.spec?.nodeName} is to grow its file system` }
    const size = claim.status?.allocatedResources?.storage ?? claim.spec?.resources?.requests?.storage ?? to
    if (compareQuantities(size, to) < 0) return { is: 'failed', message: afterThisOne(size, to) }
    return { is: 'done', message: `grown to ${size} in the storage; its file system follows when a pod next uses it` }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { is: 'working', message: 'its file system is to grow on a node' } // not ours to see who uses it
  }
}

/** A growth before this one is half done, and only a pod can end it. */
const afterThisOne = (size: string, to: string): string =>
  `the storage was grown to ${size} before, and ${to} follows when a pod has used the volume and its file system has ${size}; it goes on without us`
