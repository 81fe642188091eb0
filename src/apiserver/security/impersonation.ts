// Resolves the Impersonate-* headers, which kubectl sends for --as, --as-group and --as-uid. The authenticated user needs
// the verb impersonate on each requested user, group, UID and extra value.
import type { Authorizer, ResourceAttributes } from './authorizer.ts'
import { forbidden, missingImpersonatedUser, type RejectionStatus } from './errors.ts'
import { accountGroups, type UserInfo, withAuthenticationGroup } from './user.ts'

/** Headers with lower-case names and separate values, as in `request.headersDistinct` of Node.js. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

export type Impersonation =
  | { is: 'self'; user: UserInfo }
  | { is: 'impersonated'; user: UserInfo; by: UserInfo }
  | { is: 'rejected'; status: RejectionStatus }

export interface ImpersonationRequest {
  /** The authenticated user. */
  user: UserInfo
  headers: DistinctHeaders
  authorizer: Authorizer
}

export async function resolveImpersonation({
  user,
  headers,
  authorizer,
}: ImpersonationRequest): Promise<Impersonation> {
  const impersonationHeaders = readHeaders(headers)
  if (!impersonationHeaders.userName) {
    const otherHeaders = Object.keys(headers).filter(isOtherHeader)
    return otherHeaders.length > 0
      ? { is: 'rejected', status: missingImpersonatedUser(otherHeaders) }
      : { is: 'self', user }
  }
  for (const permission of requiredPermissions(impersonationHeaders)) {
    const attributes = { user, verb: 'impersonate', ...permission }
    const { allowed, reason } = await authorizer.authorize(attributes)
    if (!allowed) return { is: 'rejected', status: forbidden(attributes, reason) }
  }
  return { is: 'impersonated', user: impersonatedUser(impersonationHeaders), by: user }
}

interface ImpersonationHeaders {
  userName: string
  groups: readonly string[]
  uid: string
  extra: ReadonlyMap<string, readonly string[]>
}

const USER = 'impersonate-user'
const GROUP = 'impersonate-group'
const UID = 'impersonate-uid'
const EXTRA_PREFIX = 'impersonate-extra-'

const isOtherHeader = (header: string) => header === GROUP || header === UID || header.startsWith(EXTRA_PREFIX)

const readHeaders = (headers: DistinctHeaders): ImpersonationHeaders => ({
  userName: headers[USER]?.[0] ?? '',
  groups: headers[GROUP] ?? [],
  uid: headers[UID]?.[0] ?? '',
  extra: new Map(
    Object.entries(headers)
      .filter(([header]) => header.startsWith(EXTRA_PREFIX))
      .map(([header, values]) => [decodeKey(header.slice(EXTRA_PREFIX.length)), values ?? []]),
  ),
})

type Permission = Omit<ResourceAttributes, 'user' | 'verb'>

function requiredPermissions({ userName, groups, uid, extra }: ImpersonationHeaders): Permission[] {
  const account = serviceAccountOf(userName)
  const core = { group: '', version: '' }
  const authentication = { group: 'authentication.k8s.io', version: 'v1' }
  return [
    account ? { ...core, resource: 'serviceaccounts', ...account } : { ...core, resource: 'users', name: userName },
    ...groups.map((name) => ({ ...core, resource: 'groups', name })),
    ...[...extra].flatMap(([key, values]) =>
      values.map((name) => ({ ...authentication, resource: 'userextras', subresource: key, name })),
    ),
    ...(uid ? [{ ...authentication, resource: 'uids', name: uid }] : []),
  ]
}

/** Returns the impersonated user. A service account has its default groups unless groups are requested. */
function impersonatedUser({ userName, groups, uid, extra }: ImpersonationHeaders): UserInfo {
  const account = serviceAccountOf(userName)
  const defaultGroups = account ? accountGroups(account.namespace) : []
  return withAuthenticationGroup({
    name: userName,
    groups: groups.length > 0 ? groups : defaultGroups,
    uid: uid || undefined,
    extra: extra.size > 0 ? Object.fromEntries(extra) : undefined,
  })
}

const LABEL = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const SERVICE_ACCOUNT = new RegExp(`^system:serviceaccount:(?<namespace>${LABEL}):(?<name>${LABEL}(?:\\.${LABEL})*)$`)

function serviceAccountOf(userName: string): { namespace: string; name: string } | undefined {
  const { namespace, name } = SERVICE_ACCOUNT.exec(userName)?.groups ?? {}
  return namespace && name ? { namespace, name } : undefined
}

/** Decodes a percent-encoded key. Returns a key that cannot be decoded unchanged. */
function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
