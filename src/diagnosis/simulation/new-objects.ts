// Admits the objects that a simulation creates: its claims, its pods, and the claims of their ephemeral volumes.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { claimFromTemplate } from '../../controllers/ephemeral/index.ts'
import { type Claim, claimSubject, podSubject, type StoredPod } from '../cluster.ts'
import type { Diagnosis, Subject } from '../diagnosis.ts'
import { createAdmission } from './admission.ts'
import type { QuotaUsage, RejectedObject } from './result.ts'
import type { Scenario } from './scenario.ts'

export interface NewObjects {
  readonly claims: readonly Claim[]
  readonly pods: readonly StoredPod[]
  /** The objects that the API server rejects, in the order of their creation. */
  readonly rejected: readonly RejectedObject[]
  /** The diagnoses of the rejected claims. */
  readonly rejectedClaims: ReadonlyMap<ObjectKey, Diagnosis>
  readonly quotaUsage: readonly QuotaUsage[]
  readonly notes: readonly string[]
}

export function admitObjects({ snapshot, claims: newClaims, pods: newPods, unplacedPods }: Scenario): NewObjects {
  const admission = createAdmission(snapshot)
  const existing = new Set([...snapshot.claims, ...snapshot.pods].map(uniqueKey))
  const claims: Claim[] = []
  const pods: StoredPod[] = []
  const rejected: RejectedObject[] = []
  const rejectedClaims = new Map<ObjectKey, Diagnosis>()
  const notes: string[] = []
  const noteIfExisting = (object: Claim | StoredPod, kind: string): boolean => {
    if (!existing.has(uniqueKey(object))) return false
    notes.push(`The ${kind} ${keyOfObject(object)} already exists and is not changed.`)
    return true
  }
  const admitClaim = (claim: Claim): void => {
    const result = admission.admitClaim(claim)
    if (result.is === 'admitted') claims.push(result.object)
    else {
      const diagnosis = diagnoseRejection(claimSubject(claim), result.causes)
      rejectedClaims.set(keyOfObject(claim), diagnosis)
      rejected.push(toRejectedObject('PersistentVolumeClaim', diagnosis))
    }
  }
  for (const claim of newClaims) if (!noteIfExisting(claim, 'claim')) admitClaim(claim)
  for (const pod of newPods) {
    if (noteIfExisting(pod, 'pod')) continue
    const result = admission.admitPod(pod)
    if (result.is === 'admitted') {
      pods.push(result.object)
      for (const claim of ephemeralClaims(result.object)) admitClaim(claim)
    } else rejected.push(toRejectedObject('Pod', diagnoseRejection(podSubject(pod), result.causes)))
  }
  // A pod of the cluster may be so new that its ephemeral claims do not exist yet.
  for (const pod of unplacedPods)
    for (const claim of ephemeralClaims(pod)) if (!existing.has(uniqueKey(claim))) admitClaim(claim)
  return { claims, pods, rejected, rejectedClaims, quotaUsage: admission.quotaUsage(), notes }
}

/** Claims and pods of one namespace may have the same name. */
const uniqueKey = (object: Claim | StoredPod): string =>
  `${'containers' in (object.spec ?? {}) ? 'pod' : 'claim'} ${keyOfObject(object)}`

const ephemeralClaims = (pod: StoredPod): Claim[] =>
  (pod.spec?.volumes ?? []).flatMap((volume) => {
    const claim = claimFromTemplate(pod, volume)
    return claim ? [withIdentity(claim, `${pod.metadata.uid}-${volume.name}`, pod)] : []
  })

const withIdentity = (claim: PersistentVolumeClaim, uid: string, { metadata }: StoredPod): Claim => ({
  ...claim,
  metadata: {
    ...claim.metadata,
    name: claim.metadata.name ?? '',
    uid,
    resourceVersion: metadata.resourceVersion,
  } as Stored<PersistentVolumeClaim>['metadata'],
  status: { phase: 'Pending' },
})

const diagnoseRejection = (subject: Subject, causes: readonly Diagnosis[]): Diagnosis => ({
  subject,
  state: 'failed',
  reason: causes[0]?.reason ?? 'Rejected',
  message: `the API server rejects the creation: ${causes.map(({ message }) => message).join('; ')}`,
  children: causes,
})

const toRejectedObject = (kind: RejectedObject['kind'], diagnosis: Diagnosis): RejectedObject => ({
  kind,
  namespace: diagnosis.subject.namespace ?? '',
  name: diagnosis.subject.name,
  message: diagnosis.message,
  diagnosis,
})
