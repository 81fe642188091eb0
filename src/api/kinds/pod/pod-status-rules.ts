// Validates the status of a pod, which is written through /status.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { ipFamilyOf, validateIP } from '../../network-addresses.ts'
import type { Pod, PodStatus } from './pod-schema.ts'

export function validatePodStatus(next: Pod, old: Pod, errors: FieldErrors): void {
  const status = next.status ?? {}
  const storedStatus = old.status ?? {}
  validateConditions(status, errors)
  const nominatedNode = status.nominatedNodeName ?? ''
  if (nominatedNode !== '' && nominatedNode !== (storedStatus.nominatedNodeName ?? '')) {
    errors.invalidAll('status.nominatedNodeName', nominatedNode, dns1123SubdomainProblems(nominatedNode))
    if (old.spec?.nodeName) {
      errors.forbidden('status.nominatedNodeName', 'may not be set on pods that are already bound to a node')
    }
  }
  if ((status.observedGeneration ?? 0) < 0) {
    errors.invalid('status.observedGeneration', status.observedGeneration, 'must be a non-negative integer')
  }
  if ((status.qosClass ?? '') !== (storedStatus.qosClass ?? '')) {
    errors.invalid('status.qosClass', status.qosClass ?? '', 'field is immutable')
  }
  validateTerminatedContainers(next, old, errors)
  validateAddresses(status, 'podIPs', errors)
  validateAddresses(status, 'hostIPs', errors)
}

const STANDARD_CONDITIONS = ['PodScheduled', 'Ready', 'Initialized']

function validateConditions({ conditions = [] }: PodStatus, errors: FieldErrors): void {
  for (const [index, { type, observedGeneration = 0 }] of conditions.entries()) {
    const field = `status.conditions[${index}]`
    if (observedGeneration < 0) {
      errors.invalid(`${field}.observedGeneration`, observedGeneration, 'must be a non-negative integer')
    }
    if (!STANDARD_CONDITIONS.includes(type)) errors.invalidAll(`${field}.Type`, type, qualifiedNameProblems(type))
  }
}

/** Validates that a terminated container that is not restarted stays terminated. */
function validateTerminatedContainers(next: Pod, old: Pod, errors: FieldErrors): void {
  const policy = old.spec?.restartPolicy
  if (policy === 'Always' || old.spec?.containers.some(({ restartPolicy }) => restartPolicy !== undefined)) return
  const nextByName = new Map(next.status?.containerStatuses?.map((status) => [status.name, status]))
  for (const [index, { name, state }] of (old.status?.containerStatuses ?? []).entries()) {
    const terminatedState = state?.terminated
    if (!terminatedState || (terminatedState.exitCode !== 0 && policy === 'OnFailure')) continue
    const newStatus = nextByName.get(name)
    if (newStatus && !newStatus.state?.terminated) {
      const field = `status.containerStatuses[${index}].state`
      errors.forbidden(field, 'may not be transitioned to non-terminated state')
    }
  }
}

function validateAddresses(status: PodStatus, fieldName: 'podIPs' | 'hostIPs', errors: FieldErrors): void {
  const addresses = (status[fieldName] ?? []).map(({ ip }) => ip)
  const field = `status.${fieldName}`
  for (const [index, address] of addresses.entries()) validateIP(address, `${field}[${index}]`, errors)
  const families = new Set(addresses.map(ipFamilyOf))
  if (addresses.length > 1 && (addresses.length > 2 || families.size !== 2)) {
    errors.invalid(field, status[fieldName], 'may specify no more than one IP for each IP family')
  }
  const firstAddress = addresses[0]
  if (fieldName === 'hostIPs' && firstAddress !== undefined && firstAddress !== status.hostIP) {
    errors.invalid(`${field}[0].ip`, firstAddress, 'must be equal to `hostIP`')
  }
}
