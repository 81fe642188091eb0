// Lets a user act as another, as kubectl's --as, --as-group and --as-uid ask with Impersonate-* headers.
// Runs after authentication: each user, group, uid and extra value asked for needs the verb impersonate.
import type { Authorizer, ResourceAttributes } from './authorize.ts'
import { forbidden, impersonationWithoutUser, type Refusal } from './errors.ts'
import { type UserInfo, withStandingGroup } from './user.ts'

/** Lower-case names, every value on its own: node's `request.headersDistinct`. Joined values would merge groups. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

export type Impersonation =
  | { is: 'self'; user: UserInfo }
  | { is: 'impersonated'; user: UserInfo; by: UserInfo }
  | { is: 'refused'; refusal: Refusal }

export interface ImpersonationRequest {
  /** Who the request was authenticated as. */
  user: UserInfo
  headers: DistinctHeaders
  authorizer: Authorizer
}

export async function resolveImpersonation({
  user,
  headers,
  authorizer,
}: ImpersonationRequest): Promise<Impersonation> {
  const wish = readWish(headers)
  if (!wish.userName) {
    const others = Object.keys(headers).filter(isImpersonationOfMore)
    return others.length > 0 ? { is: 'refused', refusal: impersonationWithoutUser(others) } : { is: 'self', user }
  }
  for (const permission of permissionsFor(wish)) {
    const attributes = { user, verb: 'impersonate', ...permission }
    const { allowed, reason } = await authorizer.authorize(attributes)
    if (!allowed) return { is: 'refused', refusal: forbidden(attributes, reason) }
  }
  return { is: 'impersonated', user: becomeOf(wish), by: user }
}

interface Wish {
  userName: string
  groups: readonly string[]
  uid: string
  extra: ReadonlyMap<string, readonly string[]>
}

const USER = 'impersonate-user'
const GROUP = 'impersonate-group'
const UID = 'impersonate-uid'
const EXTRA_PREFIX = 'impersonate-extra-'

const isImpersonationOfMore = (header: string) => header === GROUP || header === UID || header.startsWith(EXTRA_PREFIX)

const readWish = (headers: DistinctHeaders): Wish => ({
  userName: headers[USER]?.[0] ?? '',
  groups: headers[GROUP] ?? [],
  uid: headers[UID]?.[0] ?? '',
  extra: new Map(
    Object.entries(headers)
      .filter(([header]) => header.startsWith(EXTRA_PREFIX))
      .map(([header, values]) => [unescaped(header.slice(EXTRA_PREFIX.length)), values ?? []]),
  ),
})

type Permission = Omit<ResourceAttributes, 'user' | 'verb'>

function permissionsFor({ userName, groups, uid, extra }: Wish): Permission[] {
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

/** Groups that were asked for are all there are; a service account that asks for none has its usual ones. */
function becomeOf({ userName, groups, uid, extra }: Wish): UserInfo {
  const account = serviceAccountOf(userName)
  const usual = account ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`] : []
  return withStandingGroup({
    name: userName,
    groups: groups.length > 0 ? groups : usual,
    ...(uid && { uid }),
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  })
}

const LABEL = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const SERVICE_ACCOUNT = new RegExp(`^system:serviceaccount:(?<namespace>${LABEL}):(?<name>${LABEL}(?:\\.${LABEL})*)$`)

function serviceAccountOf(userName: string): { namespace: string; name: string } | undefined {
  const { namespace, name } = SERVICE_ACCOUNT.exec(userName)?.groups ?? {}
  return namespace && name ? { namespace, name } : undefined
}

/** Keys are percent-encoded to fit a header's name; one that is not decodable is taken as it stands. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
