// Diagnoses a claim: its deletion, its binding according to the binding controller, its provisioning, and its changes.
import { claimClassName } from '../api/kinds/shared/class-names.ts'
import { findDefaultClass } from '../api/kinds/storage-class/default-class.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { type ClaimAction, planClaim } from '../controllers/binding/index.ts'
import { chooseVolume } from '../volumes/choose-volume.ts'
import { requirementsOf } from '../volumes/matching.ts'
import { SELECTED_NODE } from '../volumes/names.ts'
import { formatPlacement, readPlacement } from '../volumes/placement.ts'
import { diagnoseExpansion, diagnoseModification, diagnoseUnreadExpansion } from './changes.ts'
import { type Claim, type Cluster, claimSubject, keyOf, type StoredPod } from './cluster.ts'
import { diagnoseClaimDeletion, isBeingDeleted } from './deletion.ts'
import { type Diagnosis, destructiveFix, type Fix, fix, worstState } from './diagnosis.ts'
import { diagnoseLostVolume } from './lost-volume.ts'
import { diagnoseNamedVolume } from './named-volume.ts'
import { diagnoseOperation, findOperations } from './operations.ts'
import { describeLastFailure, diagnoseProvisioning } from './provisioning.ts'
import { diagnoseScheduling } from './scheduling/scheduling.ts'
import { findSimilarNames } from './similar-names.ts'

const NO_PROVISIONER = 'kubernetes.io/no-provisioner'

/** `isOfPod` is true within the diagnosis of a pod, which already explains why the pod is not scheduled. */
export function diagnoseClaim(claim: Claim, cluster: Cluster, { isOfPod = false } = {}): Diagnosis {
  if (isBeingDeleted(claim)) return diagnoseClaimDeletion(claim, cluster)
  const missingRules = cluster.missingRules('volumes', 'classes')
  if (missingRules.length > 0 && claim.status?.phase !== 'Bound')
    return diagnoseFromStatus(claim, cluster, missingRules)
  if (claim.status?.phase === 'Bound') return diagnoseBound(claim, cluster)
  const action = planBinding(claim, cluster)
  switch (action.do) {
    case 'bind': {
      const message = `the volume ${action.volume.metadata.name} matches: the binding controller binds it`
      const fixes = [fix('if this lasts, check that the binding controller runs')]
      const children = findOperations(cluster, claimSubject(claim), ['Bind']).map((operation) =>
        diagnoseOperation(operation, 'create', cluster),
      )
      return { ...waiting(claim, 'Binding', message, fixes), ...(children.length > 0 ? { children } : {}) }
    }
    case 'assign class':
      return waiting(claim, 'AssigningClass', `the binding controller assigns the default class ${action.className}`)
    case 'provision':
      return diagnoseProvisioning(claim, action.provisioner, cluster)
    case 'mark lost':
      return diagnoseLost(claim, action.event.message)
    case 'wait':
      return diagnoseUnbound(claim, action, cluster, isOfPod)
    case 'read volume':
      throw new Error('the plan requested a volume that the snapshot contains')
  }
}

/** Plans as the binding controller does, with all feature gates on. */
export function planBinding(claim: Claim, cluster: Cluster): ClaimAction {
  const { classes, volumes } = cluster.caches
  const className = claimClassName(claim)
  return planClaim({
    claim,
    namedVolume: claim.spec?.volumeName ? volumes.get(claim.spec.volumeName) : undefined,
    isLive: true,
    storageClass: className ? classes.get(className) : undefined,
    defaultClass: () => findDefaultClass(classes.list()),
    findVolume: ({ isDelayed }) => chooseVolume(claim, requirementsOf(claim), cluster.volumeIndex, { isDelayed }),
    unscheduledPods: () => unscheduledPods(claim, cluster).map(({ metadata }) => metadata.name),
    isInProcess: () => false,
    isAttributesClassEnabled: true,
    isProvisionedIoEnabled: true,
  })
}

const unscheduledPods = (claim: Claim, cluster: Cluster): StoredPod[] =>
  cluster.podsUsing(keyOf(claim)).filter(({ spec }) => !spec?.nodeName)

function waiting(claim: Claim, reason: string, message: string, fixes: readonly Fix[] = []): Diagnosis {
  return { subject: claimSubject(claim), state: 'waiting', reason, message, ...(fixes.length > 0 ? { fixes } : {}) }
}

function diagnoseFromStatus(claim: Claim, cluster: Cluster, missingRules: readonly string[]): Diagnosis {
  const subject = claimSubject(claim)
  const event = cluster.eventsOf(subject)[0]
  const report = event ? `; the last event is ${event.reason}: ${event.message}` : ''
  const operations = findOperations(cluster, subject, ['Provision', 'Bind'])
  const children = operations.map((operation) => diagnoseOperation(operation, 'create', cluster))
  return {
    subject,
    state: worstState(['unknown', ...children.map(({ state }) => state)]),
    reason: 'MissingRights',
    message: `the claim is ${claim.status?.phase ?? 'Pending'}; finding the cause requires permission to ${missingRules.join(', ')}${report}`,
    fixes: [fix('run the command as a user who may read these objects, such as a viewer of the cluster')],
    ...(children.length > 0 ? { children } : {}),
  }
}

function diagnoseBound(claim: Claim, cluster: Cluster): Diagnosis {
  const subject = claimSubject(claim)
  const volumeName = claim.spec?.volumeName ?? ''
  const volume = cluster.caches.volumes.get(volumeName)
  const expansion = volume ? diagnoseExpansion(claim, volume, cluster) : diagnoseUnreadExpansion(claim, cluster)
  const changes = [expansion, diagnoseModification(claim, cluster)].filter((change) => change !== undefined)
  const users = describeUsers(claim, cluster)
  const [change] = changes
  const loss = volume && diagnoseLostVolume(claim, volume, cluster)
  if (loss) return { ...loss, children: [...(loss.children ?? []), ...changes, users] }
  if (change && changes.length === 1) {
    const message = `the claim is bound to ${volumeName}, and ${change.message}`
    return { ...change, message, children: [...(change.children ?? []), users] }
  }
  return {
    subject,
    state: worstState(changes.map(({ state }) => state)),
    reason: change?.reason ?? 'Bound',
    message: `the claim is bound to the volume ${volumeName}${change ? `, and ${changes.length} changes are not complete` : ''}`,
    numbers: { capacity: claim.status?.capacity?.storage ?? '' },
    children: [...changes, users],
  }
}

/** Lists the pods that use the claim, in the state `ready`, because using a claim is not a problem. */
function describeUsers(claim: Claim, cluster: Cluster): Diagnosis {
  const pods = cluster.podsUsing(keyOf(claim))
  const names = pods.map(({ metadata, spec }) => `${metadata.name}${spec?.nodeName ? ` on ${spec.nodeName}` : ''}`)
  return {
    subject: claimSubject(claim),
    state: 'ready',
    reason: pods.length > 0 ? 'UsedByPods' : 'NotUsed',
    message: pods.length > 0 ? `used by ${names.join(', ')}` : 'no pod uses the claim',
    numbers: { pods: pods.length },
  }
}

function diagnoseLost(claim: Claim, message: string): Diagnosis {
  const { namespace = '', name } = claimSubject(claim)
  return {
    subject: claimSubject(claim),
    state: 'failed',
    reason: 'ClaimLost',
    message: `${message} The claim was bound to the volume ${JSON.stringify(claim.spec?.volumeName ?? '')}.`,
    fixes: [
      fix('if the storage still exists, create a volume of the same name for it, with a claimRef to this claim'),
      destructiveFix(
        'otherwise recreate the claim: it gets an empty volume',
        `kubectl -n ${namespace} delete pvc ${name}`,
      ),
    ],
  }
}

function diagnoseUnbound(
  claim: Claim,
  { message, event }: Extract<ClaimAction, { do: 'wait' }>,
  cluster: Cluster,
  isOfPod: boolean,
): Diagnosis {
  const subject = claimSubject(claim)
  const className = claimClassName(claim)
  const storageClass = className ? cluster.caches.classes.get(className) : undefined
  if (event?.reason === 'WaitForFirstConsumer' || event?.reason === 'WaitForPodScheduled')
    return diagnoseDelayed(claim, storageClass, cluster, isOfPod)
  if (className && !storageClass) return diagnoseMissingClass(claim, className, cluster)
  if (!className && !claim.spec?.volumeName) return diagnoseWithoutClass(claim, className, cluster)
  if (storageClass?.provisioner === NO_PROVISIONER && !claim.spec?.volumeName) {
    const size = claim.spec?.resources?.requests?.storage
    const text = `no available volume matches the claim, and its class ${className} creates none`
    const fixes = [fix(`create a volume of class ${className} with at least ${size}`, 'kubectl get pv')]
    return { subject, state: 'failed', reason: 'NoVolumeAvailable', message: text, fixes }
  }
  const reason = event?.reason ?? 'Unbound'
  const { volumeName } = claim.spec ?? {}
  if (volumeName) return diagnoseNamedVolume(subject, { volumeName, message, reason }, cluster)
  return { subject, state: 'failed', reason, message }
}

/** Diagnoses a claim of a class with the binding mode WaitForFirstConsumer. */
function diagnoseDelayed(
  claim: Claim,
  storageClass: Readonly<StorageClass> | undefined,
  cluster: Cluster,
  isOfPod: boolean,
): Diagnosis {
  const subject = claimSubject(claim)
  const className = storageClass?.metadata.name ?? ''
  const pods = cluster.podsUsing(keyOf(claim))
  const failure = describeLastFailure(claim)
  const placed = pods.find(({ spec }) => spec?.nodeName)
  if (placed && !claim.metadata.annotations?.[SELECTED_NODE]) {
    const { nodeName } = placed.spec ?? {}
    const message = `the pod ${placed.metadata.name} was put on the node ${nodeName} without a scheduler, so no node is selected for the volume`
    const command = `kubectl -n ${subject.namespace} annotate pvc ${subject.name} ${SELECTED_NODE}=${nodeName}`
    const fixes = [
      fix('replace spec.nodeName of the pod with a node selector, or select the node for the claim', command),
    ]
    return { subject, state: 'failed', reason: 'PodBypassesScheduler', message, fixes }
  }
  if (pods.length === 0) {
    return {
      subject,
      state: 'waiting',
      reason: 'WaitForFirstConsumer',
      message: `no pod uses the claim; the class ${className} creates the volume for the node of the first pod${describePlacement(storageClass)}`,
      fixes: [
        fix('create a pod that uses the claim'),
        fix('or use a class with volumeBindingMode Immediate', 'kubectl get storageclass'),
      ],
    }
  }
  const children = isOfPod ? [] : unscheduledPods(claim, cluster).map((pod) => diagnoseScheduling(pod, cluster))
  const causes = [...children, ...(failure ? [failure] : [])]
  const names = pods.map(({ metadata }) => metadata.name).join(', ')
  return {
    subject,
    state: isOfPod ? (failure ? 'failed' : 'waiting') : worstState(['waiting', ...causes.map(({ state }) => state)]),
    reason: 'WaitForPodScheduled',
    message: `the volume is created when a node is selected for the pod ${names}${describePlacement(storageClass)}`,
    ...(causes.length > 0 ? { children: causes } : {}),
  }
}

function describePlacement(storageClass: Readonly<StorageClass> | undefined): string {
  const parsed = storageClass && readPlacement(storageClass)
  if (!parsed) return ''
  return parsed.is === 'invalid'
    ? `; the placement policy of the class is ignored: ${parsed.message}`
    : `; of the nodes with enough space, the placement policy ${formatPlacement(parsed.placement)} of the class selects one`
}

function diagnoseMissingClass(claim: Claim, className: string, cluster: Cluster): Diagnosis {
  const classNames = cluster.snapshot.classes.map(({ metadata }) => metadata.name)
  const similar = findSimilarNames(className, classNames)
  const { namespace = '', name } = claimSubject(claim)
  const existing = classNames.length > 0 ? `; existing classes: ${classNames.slice(0, NAMES_MAX).join(', ')}` : ''
  return {
    subject: claimSubject(claim),
    state: 'failed',
    reason: 'StorageClassNotFound',
    message: `the storage class ${JSON.stringify(className)} does not exist${existing}`,
    fixes: [
      fix(`create the class ${className}`),
      fix(
        `or recreate the claim, which has no volume yet, with ${similar[0] ? `the class ${similar[0]}` : 'an existing class'}`,
        `kubectl -n ${namespace} delete pvc ${name}`,
      ),
    ],
  }
}

const NAMES_MAX = 5

function diagnoseWithoutClass(claim: Claim, className: string | undefined, cluster: Cluster): Diagnosis {
  const subject = claimSubject(claim)
  if (className === '') {
    const message =
      'the claim requests no class (storageClassName is ""), and no available volume without a class matches it'
    const size = claim.spec?.resources?.requests?.storage
    const fixes = [fix(`create a volume without a class with at least ${size}`, 'kubectl get pv')]
    return { subject, state: 'failed', reason: 'NoVolumeAvailable', message, fixes }
  }
  const target = suggestDefaultClass(cluster) ?? 'CLASS'
  return {
    subject,
    state: 'failed',
    reason: 'NoDefaultClass',
    message: 'the claim names no storage class, no class is the default, and no available volume matches it',
    fixes: [
      fix(
        'make a class the default: the claim then gets it',
        `kubectl annotate storageclass ${target} storageclass.kubernetes.io/is-default-class=true --overwrite`,
      ),
    ],
  }
}

/** Returns a class with a driver that is registered on a node, or else the first class. */
function suggestDefaultClass({ snapshot: { classes, csiNodes } }: Cluster): string | undefined {
  const isRegistered = (driver: string) =>
    csiNodes.some(({ spec }) => spec?.drivers?.some(({ name }) => name === driver))
  const suggestion = classes.find(({ provisioner }) => isRegistered(provisioner ?? '')) ?? classes[0]
  return suggestion?.metadata.name
}
