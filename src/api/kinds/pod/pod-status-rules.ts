// Validates the status of a pod, which the node agent and the scheduler write through /status.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123SubdomainProblems, qualifiedNameProblems } from '../../names.ts'
import { ipFamilyOf, validateIP } from '../../network-addresses.ts'
import type { Pod, PodStatus } from './pod-schema.ts'

export function validatePodStatus(next: Pod, old: Pod, errors: FieldErrors): void {
  const status = next.status ?? {}
  const stored = old.status ?? {}
  validateConditions(status, errors)
  const nominated = status.nominatedNodeName ?? ''
  if (nominated !== '' && nominated !== (stored.nominatedNodeName ?? '')) {
    errors.invalidAll('status.nominatedNodeName', nominated, dns1123SubdomainProblems(nominated))
    if (old.spec?.nodeName) {
      errors.forbidden('status.nominatedNodeName', 'may not be set on pods that are already bound to a node')
    }
  }
  if ((status.observedGeneration ?? 0) < 0) {
    errors.invalid('status.observedGeneration', status.observedGeneration, 'must be a non-negative integer')
  }
  if ((status.qosClass ?? '') !== (stored.qosClass ?? '')) {
    errors.invalid('status.qosClass', status.qosClass ?? '', 'field is immutable')
  }
  validateStayedTerminated(next, old, errors)
  validateAddresses(status, 'podIPs', errors)
  validateAddresses(status, 'hostIPs', errors)
}

const OWN_CONDITIONS = ['PodScheduled', 'Ready', 'Initialized']

function validateConditions({ conditions = [] }: PodStatus, errors: FieldErrors): void {
  for (const [index, { type, observedGeneration = 0 }] of conditions.entries()) {
    const field = `status.conditions[${index}]`
    if (observedGeneration < 0) {
      errors.invalid(`${field}.observedGeneration`, observedGeneration, 'must be a non-negative integer')
    }
    if (!OWN_CONDITIONS.includes(type)) errors.invalidAll(`${field}.Type`, type, qualifiedNameProblems(type))
  }
}

/** A terminated container that is not restarted must stay terminated. */
function validateStayedTerminated(next: Pod, old: Pod, errors: FieldErrors): void {
  const policy = old.spec?.restartPolicy
  if (policy === 'Always' || old.spec?.containers.some(({ restartPolicy }) => restartPolicy !== undefined)) return
  const nextByName = new Map(next.status?.containerStatuses?.map((status) => [status.name, status]))
  for (const [index, { name, state }] of (old.status?.containerStatuses ?? []).entries()) {
    const ended = state?.terminated
    if (!ended || (ended.exitCode !== 0 && policy === 'OnFailure')) continue
    const now = nextByName.get(name)
    if (now && !now.state?.terminated) {
      const field = `status.containerStatuses[${index}].state`
      errors.forbidden(field, 'may not be transitioned to non-terminated state')
    }
  }
}

function validateAddresses(status: PodStatus, part: 'podIPs' | 'hostIPs', errors: FieldErrors): void {
  const addresses = (status[part] ?? []).map(({ ip }) => ip)
  const field = `status.${part}`
  for (const [index, address] of addresses.entries()) validateIP(address, `${field}[${index}]`, errors)
  const families = new Set(addresses.map(ipFamilyOf))
  if (addresses.length > 1 && (addresses.length > 2 || families.size !== 2)) {
    errors.invalid(field, status[part], 'may specify no more than one IP for each IP family')
  }
  const first = addresses[0]
  if (part === 'hostIPs' && first !== undefined && first !== status.hostIP) {
    errors.invalid(`${field}[0].ip`, first, 'must be equal to `hostIP`')
  }
}
