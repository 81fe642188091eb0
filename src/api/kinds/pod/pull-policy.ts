// Computes the default image pull policy from an image reference, and validates image pull policies.
import type { FieldErrors } from '../../field-errors.ts'

/** Returns Always for the tag latest and for a name without a tag or digest, and IfNotPresent otherwise. */
export function defaultPullPolicy(image: string): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = image.split('@')
  const repository = name.slice(name.lastIndexOf('/') + 1)
  const tag = repository.includes(':') ? repository.slice(repository.indexOf(':') + 1) : undefined
  const isMutable = tag === 'latest' || (tag === undefined && digest === undefined && name !== '')
  return isMutable ? 'Always' : 'IfNotPresent'
}

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never']

export function validatePullPolicy(policy: string | undefined, field: string, errors: FieldErrors): void {
  if (policy === undefined) errors.required(field)
  else if (!PULL_POLICIES.includes(policy)) errors.notSupported(field, policy, PULL_POLICIES)
}
