// The image pull policy: its default, derived from the image reference, and its validation.
import type { FieldErrors } from '../../field-errors.ts'

/** Always for a mutable reference (tag latest or no tag), otherwise IfNotPresent. */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = image.split('@')
  const lastPart = name.slice(name.lastIndexOf('/') + 1)
  const tag = lastPart.includes(':') ? lastPart.slice(lastPart.indexOf(':') + 1) : undefined
  const isMutable = tag === 'latest' || (tag === undefined && digest === undefined && name !== '')
  return isMutable ? 'Always' : 'IfNotPresent'
}

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never']

export function validatePullPolicy(policy: string | undefined, field: string, errors: FieldErrors): void {
  if (policy === undefined) errors.required(field)
  else if (!PULL_POLICIES.includes(policy)) errors.notSupported(field, policy, PULL_POLICIES)
}
