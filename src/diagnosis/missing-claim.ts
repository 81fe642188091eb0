// Diagnoses a claim that does not exist although a pod uses it: a quota or limit range that rejects it, or a misspelt name.
import type { KubeObject } from '../api/kind.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { findClaimViolations } from '../api/limits/index.ts'
import { chargeQuota, createChangeCalculator, QuotaAccount } from '../api/quota/index.ts'
import { claimFromTemplate } from '../controllers/ephemeral/index.ts'
import { describeLimitViolations, describeQuotaExcess } from './admission-causes.ts'
import type { Cluster, StoredPod } from './cluster.ts'
import { type Diagnosis, fix, type Subject } from './diagnosis.ts'
import { findSimilarNames } from './similar-names.ts'
import { listObjectsOf, SNAPSHOT_KINDS } from './snapshot.ts'

export function diagnoseMissingClaim(
  { namespace = '', name }: Subject,
  pods: readonly StoredPod[],
  cluster: Cluster,
): Diagnosis {
  const subject: Subject = { kind: 'PersistentVolumeClaim', namespace, name }
  const template = findTemplate(name, pods)
  if (template) return diagnoseTemplate(subject, template, cluster)
  const names = cluster.caches.claims.list(namespace).map(({ metadata }) => metadata.name)
  const similar = findSimilarNames(name, names)
  const hint = similar.length > 0 ? `; similar names: ${similar.join(', ')}` : ''
  return {
    subject,
    state: 'failed',
    reason: 'ClaimNotFound',
    message: `the claim does not exist in the namespace ${namespace}${hint}`,
    fixes: [fix('create the claim, or correct the name in the pod', `kubectl -n ${namespace} get pvc`)],
    ...withChildren(diagnoseRejections(subject, cluster)),
  }
}

const withChildren = (children: readonly Diagnosis[]) => (children.length > 0 ? { children } : {})

/** Returns the claim that the ephemeral volume controller would create under the name for one of the pods. */
function findTemplate(name: string, pods: readonly StoredPod[]): PersistentVolumeClaim | undefined {
  for (const pod of pods) {
    for (const volume of pod.spec?.volumes ?? []) {
      const claim = claimFromTemplate(pod, volume)
      if (claim?.metadata.name === name) return claim
    }
  }
  return undefined
}

function diagnoseTemplate(subject: Subject, claim: PersistentVolumeClaim, cluster: Cluster): Diagnosis {
  const children = [...diagnoseLimits(claim, cluster), ...diagnoseQuotas(claim, cluster)]
  const causes = children.length > 0 ? children : diagnoseRejections(subject, cluster)
  return {
    subject,
    state: causes.length > 0 ? 'failed' : 'waiting',
    reason: 'ClaimNotCreated',
    message: 'the ephemeral volume controller has not created the claim of the pod yet',
    ...withChildren(causes),
  }
}

function diagnoseLimits(claim: PersistentVolumeClaim, { snapshot }: Cluster): Diagnosis[] {
  const ranges = snapshot.limitRanges.filter(isInNamespaceOf(claim))
  return ranges.flatMap((range) => describeLimitViolations(range, findClaimViolations(claim, range)))
}

function diagnoseQuotas(claim: PersistentVolumeClaim, { snapshot }: Cluster): Diagnosis[] {
  const changesOf = createChangeCalculator({ kind: SNAPSHOT_KINDS.claims, oldObject: undefined, newObject: claim })
  const listObjects = listObjectsOf(snapshot, claim.metadata.namespace)
  return snapshot.quotas.filter(isInNamespaceOf(claim)).flatMap((quota): Diagnosis[] => {
    const account = QuotaAccount.create(quota)
    const changes = changesOf(account)
    const result = chargeQuota({ account, changes, uid: '', canReject: true, listObjects })
    return result.is === 'exceeded' ? [describeQuotaExcess(account, changes, result.message)] : []
  })
}

const isInNamespaceOf =
  ({ metadata: { namespace } }: PersistentVolumeClaim) =>
  ({ metadata }: KubeObject): boolean =>
    metadata.namespace === namespace

/** Diagnoses the first warning about a rejected creation of the claim, for example on a StatefulSet in its namespace. */
function diagnoseRejections({ namespace: claimNamespace, name }: Subject, { snapshot }: Cluster): Diagnosis[] {
  const isRejection = /exceeded quota|failed quota|forbidden|(maximum|minimum) .* usage/
  const rejection = snapshot.events.find(
    ({ type, message = '', involvedObject }) =>
      type === 'Warning' &&
      involvedObject.namespace === claimNamespace &&
      namesObject(message, name) &&
      isRejection.test(message),
  )
  if (!rejection) return []
  const { kind = '', namespace = '', name: object = '' } = rejection.involvedObject
  const subject: Subject = { kind, ...(namespace ? { namespace } : {}), name: object }
  return [{ subject, state: 'failed', reason: rejection.reason ?? 'Rejected', message: rejection.message ?? '' }]
}

/** Whether the text contains the name as a whole: `data-web-1` is not part of `data-web-10`. */
function namesObject(text: string, name: string): boolean {
  const isNameCharacter = (character: string | undefined) => character !== undefined && /[a-z0-9-]/.test(character)
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!isNameCharacter(text[at - 1]) && !isNameCharacter(text[at + name.length])) return true
  }
  return false
}
