// Diagnoses the expansion and the modification of a bound claim.
import type { Stored } from '../api/kind.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { planExpansion } from '../controllers/expanding/index.ts'
import { resizeCondition, resizeStateOf } from '../volumes/resize-status.ts'
import { claimCapacity, isLess, requestedStorage } from '../volumes/sizes.ts'
import { type Claim, type Cluster, claimSubject, keyOf } from './cluster.ts'
import { type Diagnosis, type DiagnosisState, type Fix, fix } from './diagnosis.ts'
import { currentOperation, diagnoseFailure, lastFailure } from './last-failure.ts'

type Volume = Readonly<Stored<PersistentVolume>>

/** Delay after which the resizer retries an infeasible size. */
const SLOW_RETRY_MS = 300_000

/** Returns undefined if the volume has the requested size. */
export function diagnoseExpansion(claim: Claim, volume: Volume, cluster: Cluster): Diagnosis | undefined {
  const step = planExpansion({
    claim,
    volume,
    mayBeLarger: false,
    isEdited: false,
    isBlockedByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: cluster.snapshot.nowMs,
    slowRetryMs: SLOW_RETRY_MS,
  })
  const isGrowing = isLess(claimCapacity(claim), requestedStorage(claim))
  if (!isGrowing && (step.do === 'nothing' || step.do === 'removeAnnotation')) return undefined
  const state = resizeStateOf(claim)
  const error = resizeCondition(claim, 'ControllerResizeError') ?? resizeCondition(claim, 'NodeResizeError')
  const subject = claimSubject(claim)
  const condition = error?.message
    ? diagnoseFailure(error.message, 'expand', { subject: { kind: 'Condition', name: error.type } })
    : undefined
  const reasons = ['VolumeResizeFailed', 'FileSystemResizeFailed']
  const failure = lastFailure(cluster, subject, 'expand', { reasons, condition })
  const cause = failure ?? currentOperation(cluster, subject, 'expand')
  const retryMs = step.do === 'wait' ? step.afterMs : undefined
  return {
    subject,
    ...describeStage(claim, volume, cluster, {
      state,
      hasError: failure !== undefined,
      hasStarted: cause !== undefined,
    }),
    numbers: {
      requested: requestedStorage(claim),
      capacity: claimCapacity(claim),
      ...(state === undefined ? {} : { status: state }),
      ...(retryMs === undefined ? {} : { nextRetrySeconds: Math.round(retryMs / 1000) }),
    },
    ...(cause ? { children: [cause] } : {}),
  }
}

/** Diagnoses the expansion of a claim whose volume cannot be read, from the sizes in the claim alone. */
export function diagnoseUnreadExpansion(claim: Claim, cluster: Cluster): Diagnosis | undefined {
  const [rule] = cluster.missingRules('volumes')
  const [capacity, requested] = [claimCapacity(claim), requestedStorage(claim)]
  if (!rule || !isLess(capacity, requested)) return undefined
  return {
    subject: claimSubject(claim),
    state: 'unknown',
    reason: 'MissingRights',
    message: `the expansion from ${capacity} to ${requested} is not complete; finding the cause requires permission to ${rule}`,
    numbers: { requested, capacity },
  }
}

function describeStage(
  claim: Claim,
  volume: Volume,
  cluster: Cluster,
  { state, hasError, hasStarted }: { state: string | undefined; hasError: boolean; hasStarted: boolean },
): { state: DiagnosisState; reason: string; message: string; fixes?: readonly Fix[] } {
  const driver = volume.spec?.csi?.driver ?? 'the volume plugin'
  const sizes = `from ${claimCapacity(claim)} to ${requestedStorage(claim)}`
  if (state?.endsWith('Infeasible')) {
    const message = `the expansion ${sizes} is not possible`
    return { state: 'failed', reason: state, message, fixes: [cancelFix(claim)] }
  }
  if (state === 'NodeResizePending' || resizeCondition(claim, 'FileSystemResizePending')) {
    const isUsed = cluster.podsUsing(keyOf(claim)).some(({ spec }) => spec?.nodeName)
    const message = isUsed
      ? `the volume is expanded ${sizes}; the node expands the file system`
      : `the volume is expanded ${sizes}; the file system is expanded when a pod uses the claim`
    const fixes = isUsed ? undefined : [fix('start a pod that uses the claim')]
    return { state: 'waiting', reason: 'FileSystemResizePending', message, ...(fixes ? { fixes } : {}) }
  }
  if (state === undefined && !hasStarted) {
    const message = `the expansion ${sizes} is requested, but no resizer of ${driver} has started it`
    const fixes = [fix(`check that a resizer of ${driver} runs`, 'stowage doctor')]
    return { state: 'waiting', reason: 'ExpansionNotStarted', message, fixes }
  }
  if (hasError) {
    const message = `the expansion ${sizes} has failed and is retried`
    return { state: 'failed', reason: 'ExpansionFailed', message, fixes: [cancelFix(claim)] }
  }
  return { state: 'waiting', reason: 'Expanding', message: `the volume is being expanded ${sizes}` }
}

function cancelFix(claim: Claim): Fix {
  const { namespace = '', name } = claimSubject(claim)
  const size = claimCapacity(claim)
  const patch = JSON.stringify({ spec: { resources: { requests: { storage: size } } } })
  return fix(`cancel the expansion: request ${size} again`, `kubectl -n ${namespace} patch pvc ${name} -p '${patch}'`)
}

/** Returns undefined if the volume has the requested attributes class. */
export function diagnoseModification(claim: Claim, cluster: Cluster): Diagnosis | undefined {
  const { spec, status } = claim
  const requested = spec?.volumeAttributesClassName || undefined
  const current = status?.currentVolumeAttributesClassName || undefined
  const progress = status?.modifyVolumeStatus
  if (!progress && (requested === undefined || requested === current)) return undefined
  const subject = claimSubject(claim)
  const target = progress?.targetVolumeAttributesClassName || requested || ''
  const numbers = {
    requested: requested ?? '',
    current: current ?? '',
    ...(progress ? { status: progress.status } : {}),
  }
  const attributesClass = cluster.snapshot.attributesClasses.find(({ metadata }) => metadata.name === target)
  if (!attributesClass && cluster.missingRules('attributesClasses').length === 0) {
    const message = `the attributes class ${JSON.stringify(target)} does not exist`
    const fixes = [fix('create the class, or request an existing one', 'kubectl get volumeattributesclass')]
    return { subject, state: 'failed', reason: 'AttributesClassNotFound', message, numbers, fixes }
  }
  const failure = lastFailure(cluster, subject, 'modify', { reasons: ['VolumeModifyFailed'] })
  const cause = failure ?? currentOperation(cluster, subject, 'modify')
  const children = cause ? { children: [cause] } : {}
  if (progress?.status === 'Infeasible') {
    const message = `the driver cannot give the volume the attributes of the class ${target}`
    const fixes = [fix(current ? `request ${current} again` : 'request another class', modifyCommand(claim, current))]
    return { subject, state: 'failed', reason: 'ModificationInfeasible', message, numbers, fixes, ...children }
  }
  const message = `the volume is being modified to the attributes class ${target}`
  return { subject, state: failure ? 'failed' : 'waiting', reason: 'Modifying', message, numbers, ...children }
}

function modifyCommand(claim: Claim, className = 'CLASS'): string {
  const { namespace = '', name } = claimSubject(claim)
  return `kubectl -n ${namespace} patch pvc ${name} -p '{"spec":{"volumeAttributesClassName":"${className}"}}'`
}
