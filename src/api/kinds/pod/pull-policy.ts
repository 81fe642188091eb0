// When an image is fetched: the default that follows from how it is named, and the values there are.
import type { FieldErrors } from '../../field-errors.ts'

/** An image that may change under its name is pulled each time: one tagged latest, or not tagged at all. */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = image.split('@')
  const lastPart = name.slice(name.lastIndexOf('/') + 1)
  const tag = lastPart.includes(':') ? lastPart.slice(lastPart.indexOf(':') + 1) : undefined
  const moves = tag === 'latest' || (tag === undefined && digest === undefined && name !== '')
  return moves ? 'Always' : 'IfNotPresent'
}

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never']

export function validatePullPolicy(policy: string | undefined, field: string, errors: FieldErrors): void {
  if (policy === undefined) errors.required(field)
  else if (!PULL_POLICIES.includes(policy)) errors.notSupported(field, policy, PULL_POLICIES)
}
