// Checks the user's permissions with SelfSubjectAccessReviews, so that the page can disable actions that the API server would
// reject. The API server still authorizes each request.
import { selfSubjectAccessReviewKind } from '../../api/kinds/reviews/reviews.ts'
import { badRequest } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { AccessCheck, AccessResponse } from '../protocol.ts'

const CHECKS_MAX = 100
const CACHED_MS_MAX = 30_000
/** Beyond this number, the oldest results are dropped. */
const RESULTS_MAX = 2_000
const FIELDS = ['verb', 'group', 'resource', 'subresource', 'namespace', 'name'] as const

export function createAccess({ client, clock }: { readonly client: Pick<Client, 'create'>; readonly clock: Clock }) {
  const results = new Map<string, { readonly allowed: Promise<boolean>; readonly expiresAtMs: number }>()

  function isAllowed(check: AccessCheck): Promise<boolean> {
    const attributes = Object.fromEntries(FIELDS.map((field) => [field, check[field] ?? '']))
    const key = JSON.stringify(attributes)
    const cached = results.get(key)
    if (cached && clock.monotonicMs() < cached.expiresAtMs) return cached.allowed
    const allowed = client
      .create(selfSubjectAccessReviewKind, { metadata: {}, spec: { resourceAttributes: attributes } })
      .then(({ status }) => status?.allowed === true)
    results.delete(key)
    results.set(key, { allowed, expiresAtMs: clock.monotonicMs() + CACHED_MS_MAX })
    const [oldestKey] = results.keys()
    if (results.size > RESULTS_MAX && oldestKey !== undefined) results.delete(oldestKey)
    allowed.catch(() => results.delete(key))
    return allowed
  }

  return async (checks: unknown): Promise<AccessResponse> => {
    if (!Array.isArray(checks) || !checks.every(isCheck)) {
      throw badRequest('expected checks with verb, group and resource')
    }
    if (checks.length > CHECKS_MAX) throw badRequest(`expected at most ${CHECKS_MAX} checks`)
    return { allowed: await Promise.all(checks.map(isAllowed)) }
  }
}

const isCheck = (value: unknown): value is AccessCheck => {
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Readonly<Record<string, unknown>>
  return (
    FIELDS.every((field) => fields[field] === undefined || typeof fields[field] === 'string') &&
    ['verb', 'group', 'resource'].every((field) => typeof fields[field] === 'string')
  )
}
