// Admits the claims and pods of a simulation as the API server does: default class, priority class, defaults and bounds of limit
// ranges, and quotas, which each admitted object charges.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { LimitRange } from '../../api/kinds/limit-range/limit-range-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { findDefaultPriorityClass } from '../../api/kinds/priority-class/default-priority-class.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { findDefaultClass } from '../../api/kinds/storage-class/default-class.ts'
import { applyClaimDefaults, applyPodDefaults, findClaimViolations, findPodViolations } from '../../api/limits/index.ts'
import {
  chargeQuota,
  createChangeCalculator,
  describeMissingConstraints,
  formatAmounts,
  QuotaAccount,
} from '../../api/quota/index.ts'
import { clone } from '../../base/clone.ts'
import { describeLimitViolations, describeQuotaExcess } from '../admission-causes.ts'
import type { Claim, StoredPod } from '../cluster.ts'
import type { Diagnosis } from '../diagnosis.ts'
import { listObjectsOf, SNAPSHOT_KINDS, type Snapshot } from '../snapshot.ts'
import type { QuotaUsage } from './result.ts'

type AdmissionResult<T> =
  | { readonly is: 'admitted'; readonly object: T }
  /** `causes` are the limit ranges or the quota that reject the object, or the missing priority class. */
  | { readonly is: 'rejected'; readonly causes: readonly Diagnosis[] }

export interface Admission {
  admitClaim(claim: Claim): AdmissionResult<Claim>
  admitPod(pod: StoredPod): AdmissionResult<StoredPod>
  /** Returns the quotas that admission has checked so far, with their usage. */
  quotaUsage(): readonly QuotaUsage[]
}

export function createAdmission(snapshot: Snapshot): Admission {
  const accountsByNamespace = new Map<string, QuotaAccount[]>()
  const isInNamespace = (namespace: string) => (object: KubeObject) => object.metadata.namespace === namespace

  function accountsOf(namespace: string): QuotaAccount[] {
    let accounts = accountsByNamespace.get(namespace)
    if (!accounts) {
      accounts = snapshot.quotas.filter(isInNamespace(namespace)).map((quota) => QuotaAccount.create(quota))
      accountsByNamespace.set(namespace, accounts)
    }
    return accounts
  }

  /** Charges all quotas of the namespace. If one rejects the object, charges none and returns the cause. */
  function charge<T extends KubeObject>(kind: Kind<T>, object: Stored<T>): Diagnosis | undefined {
    const { namespace = '', uid } = object.metadata
    const accounts = accountsOf(namespace)
    if (accounts.length === 0) return undefined
    const changesOf = createChangeCalculator({ kind, oldObject: undefined, newObject: object })
    const listObjects = listObjectsOf(snapshot, namespace)
    const charged: QuotaAccount[] = []
    for (const account of accounts) {
      const missing = describeMissingConstraints(account.quota, kind, object)
      if (missing) return describeMissing(account, missing)
      const changes = changesOf(account)
      const result =
        changes.length > 0 ? chargeQuota({ account, changes, uid, canReject: true, listObjects }) : undefined
      if (result?.is === 'exceeded') return describeQuotaExcess(account, changes, result.message)
      charged.push(result?.account ?? account)
    }
    accountsByNamespace.set(namespace, charged)
    return undefined
  }

  function admit<T extends KubeObject>(
    kind: Kind<T>,
    object: Stored<T>,
    findViolations: (range: Readonly<LimitRange>) => readonly string[],
  ): AdmissionResult<Stored<T>> {
    const ranges = snapshot.limitRanges.filter(isInNamespace(object.metadata.namespace ?? ''))
    const violations = ranges.flatMap((range) => describeLimitViolations(range, findViolations(range)))
    if (violations.length > 0) return { is: 'rejected', causes: violations }
    const rejection = charge(kind, object)
    return rejection ? { is: 'rejected', causes: [rejection] } : { is: 'admitted', object }
  }

  /** Sets the priority of the pod from its class. Returns the cause if the class does not exist. */
  function resolvePriority({ spec }: Stored<Pod>): Diagnosis | undefined {
    const { priorityClasses, missingRules, notServed } = snapshot
    const arePriorityClassesUnknown =
      notServed.has('priorityClasses') || missingRules.some(({ list }) => list === 'priorityClasses')
    if (!spec || spec.priority !== undefined || arePriorityClassesUnknown) return undefined
    const { priorityClassName: name } = spec
    const priorityClass = name
      ? priorityClasses.find(({ metadata }) => metadata.name === name)
      : findDefaultPriorityClass(priorityClasses)
    if (name && !priorityClass) return describeMissingClass(name)
    Object.assign(spec, {
      ...(priorityClass ? { priorityClassName: priorityClass.metadata.name } : {}),
      priority: priorityClass?.value ?? 0,
      preemptionPolicy: priorityClass?.preemptionPolicy ?? 'PreemptLowerPriority',
    })
    return undefined
  }

  return {
    admitClaim(claim) {
      const draft = clone(claim) as Stored<PersistentVolumeClaim>
      if (claimClassName(draft) === undefined) {
        const className = findDefaultClass(snapshot.classes)?.metadata.name
        if (className) draft.spec = { ...draft.spec, storageClassName: className }
      }
      const attributesClass = snapshot.attributesClasses.find(
        ({ metadata }) => metadata.name === draft.spec?.volumeAttributesClassName,
      )
      const isSetByClass = (name: string) => Object.hasOwn(attributesClass?.parameters ?? {}, name)
      for (const range of snapshot.limitRanges.filter(isInNamespace(draft.metadata.namespace ?? '')))
        applyClaimDefaults(draft, range, isSetByClass)
      return admit(SNAPSHOT_KINDS.claims, draft, (range) => findClaimViolations(draft, range))
    },
    admitPod(pod) {
      const draft = clone(pod) as Stored<Pod>
      const missingClass = resolvePriority(draft)
      if (missingClass) return { is: 'rejected', causes: [missingClass] }
      for (const range of snapshot.limitRanges.filter(isInNamespace(draft.metadata.namespace ?? '')))
        applyPodDefaults(draft, range)
      return admit(SNAPSHOT_KINDS.pods, draft, (range) => findPodViolations(draft, range))
    },
    quotaUsage: () =>
      [...accountsByNamespace.values()].flat().map(({ quota, used }) => ({
        namespace: quota.metadata.namespace ?? '',
        name: quota.metadata.name ?? '',
        hard: quota.spec?.hard ?? {},
        used: formatAmounts(used),
      })),
  }
}

const describeMissingClass = (name: string): Diagnosis => ({
  subject: { kind: 'PriorityClass', name },
  state: 'failed',
  reason: 'PriorityClassNotFound',
  message: `no PriorityClass with name ${name} was found`,
})

function describeMissing({ quota }: QuotaAccount, message: string): Diagnosis {
  const { namespace = '', name = '' } = quota.metadata
  return {
    subject: { kind: 'ResourceQuota', namespace, name },
    state: 'failed',
    reason: 'MissingConstraints',
    message: `failed quota: ${name}: ${message}`,
  }
}
