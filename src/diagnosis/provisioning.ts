// Diagnoses a claim for which the provisioner of its class has to create a volume.
import { LAST_FAILURE } from '../volumes/names.ts'
import { ageSeconds, type Claim, type Cluster, claimSubject } from './cluster.ts'
import { type Diagnosis, fix } from './diagnosis.ts'
import { currentOperation, diagnoseFailure, lastFailure } from './last-failure.ts'

const FAILURE_REASONS = ['ProvisioningFailed', 'ProvisioningCleanupFailed']

export function diagnoseProvisioning(claim: Claim, provisioner: string, cluster: Cluster): Diagnosis {
  const subject = claimSubject(claim)
  const failure = lastFailure(cluster, subject, 'create', { reasons: FAILURE_REASONS }) ?? describeLastFailure(claim)
  const age = ageSeconds(claim.metadata.creationTimestamp, cluster.snapshot.nowMs) ?? 0
  const numbers = { provisioner, ageSeconds: age, requested: claim.spec?.resources?.requests?.storage ?? '' }
  if (failure) {
    const message = `the provisioner ${provisioner} could not create the volume`
    const fixes = failure.numbers?.code === 'OutOfRange' ? { fixes: [recreateWithOtherSize(claim)] } : {}
    return { subject, state: 'failed', reason: 'ProvisioningFailed', message, numbers, ...fixes, children: [failure] }
  }
  const current = currentOperation(cluster, subject, 'create')
  if (current || cluster.eventsOf(subject).some(({ reason }) => reason === 'Provisioning')) {
    const message = `the provisioner ${provisioner} is creating the volume`
    const children = current ? { children: [current] } : {}
    return { subject, state: 'waiting', reason: 'Provisioning', message, numbers, ...children }
  }
  const missingRules = cluster.missingRules('events')
  if (missingRules.length > 0) {
    const message = `finding out whether the provisioner ${provisioner} has tried requires permission to ${missingRules.join(', ')}`
    return { subject, state: 'unknown', reason: 'MissingRights', message, numbers }
  }
  return {
    subject,
    state: 'waiting',
    reason: 'ProvisionerSilent',
    message: `the provisioner ${provisioner} has not responded to the claim for ${age} s`,
    numbers,
    fixes: [
      fix(
        `check that a provisioner of ${provisioner} runs, and may read the claim`,
        `stowage doctor --driver ${provisioner}`,
      ),
    ],
  }
}

/** The size of a claim without a volume cannot be changed. */
function recreateWithOtherSize(claim: Claim) {
  const { namespace = '', name } = claimSubject(claim)
  return fix(
    'recreate the claim, which has no volume yet, with a size that the driver allows',
    `kubectl -n ${namespace} delete pvc ${name}`,
  )
}

/** Returns the failure that the provisioner has recorded on the claim, or undefined if there is none. */
export function describeLastFailure(claim: Claim): Diagnosis | undefined {
  const message = claim.metadata.annotations?.[LAST_FAILURE]
  return message === undefined
    ? undefined
    : diagnoseFailure(message, 'create', { subject: { kind: 'Annotation', name: LAST_FAILURE } })
}
