// The user of a request, and the users and groups with a special meaning.

export interface UserInfo {
  name: string
  uid?: string
  groups: readonly string[]
  extra?: Readonly<Record<string, readonly string[]>>
}

export const AUTHENTICATED_GROUP = 'system:authenticated'
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated'
/** Group with all permissions. */
export const MASTERS_GROUP = 'system:masters'
/** Group with permission to read all resources except secrets. */
export const VIEWERS_GROUP = 'stowage:viewers'

/** Group of all ServiceAccounts. */
export const ACCOUNTS_GROUP = 'system:serviceaccounts'

export const accountUserName = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`
export const accountsGroupOf = (namespace: string): string => `${ACCOUNTS_GROUP}:${namespace}`
export const accountGroups = (namespace: string): string[] => [ACCOUNTS_GROUP, accountsGroupOf(namespace)]

/** Returns the authenticated user of a ServiceAccount. */
export const accountUser = (namespace: string, name: string): UserInfo => ({
  name: accountUserName(namespace, name),
  groups: [...accountGroups(namespace), AUTHENTICATED_GROUP],
})

const ANONYMOUS_NAME = 'system:anonymous'
export const ANONYMOUS: UserInfo = Object.freeze({
  name: ANONYMOUS_NAME,
  groups: Object.freeze([UNAUTHENTICATED_GROUP]),
})

/** Adds system:authenticated, or system:unauthenticated for the anonymous user, unless the user already has either group. */
export function withAuthenticationGroup(user: UserInfo): UserInfo {
  const group = user.name === ANONYMOUS_NAME ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP
  const hasGroup = user.groups.includes(group) || user.groups.includes(UNAUTHENTICATED_GROUP)
  return hasGroup ? user : { ...user, groups: [...user.groups, group] }
}
