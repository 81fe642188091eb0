// Checks PriorityClasses: the range of the value, the reserved names, the policy, and immutability.
import { format, type Report } from './findings.ts'

const SYSTEM_VALUES: Record<string, number> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
}

export function checkPriorityClass(priorityClass: any, report: Report, old?: any): void {
  const { metadata, value, globalDefault, preemptionPolicy } = priorityClass
  if (!Number.isInteger(value) || value < -(2 ** 31) || value >= 2 ** 31)
    report('value', `${format(value)} is no int32`)
  if (metadata.name.startsWith('system-')) {
    if (SYSTEM_VALUES[metadata.name] !== value) report('metadata.name', 'the name is reserved for another value')
    if (globalDefault) report('globalDefault', 'a system class cannot be the default')
  } else if (value > 1_000_000_000) report('value', `${value} is reserved for system classes`)
  if (!['PreemptLowerPriority', 'Never'].includes(preemptionPolicy))
    report('preemptionPolicy', format(preemptionPolicy))
  for (const field of old ? ['value', 'preemptionPolicy'] : []) {
    if (priorityClass[field] !== old[field]) report(field, 'cannot change')
  }
}
