// Who a request comes from, and the user and group names that mean something to the server itself.

export interface UserInfo {
  name: string
  uid?: string
  groups: readonly string[]
  extra?: Readonly<Record<string, readonly string[]>>
}

export const AUTHENTICATED_GROUP = 'system:authenticated'
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated'
/** May do everything; no rule is asked. */
export const MASTERS_GROUP = 'system:masters'
/** May read everything but secrets. */
export const VIEWERS_GROUP = 'stowage:viewers'

export const ANONYMOUS_NAME = 'system:anonymous'
export const ANONYMOUS: UserInfo = Object.freeze({
  name: ANONYMOUS_NAME,
  groups: Object.freeze([UNAUTHENTICATED_GROUP]),
})

/** Adds the group that says whether somebody is known, unless the groups already say so. */
export function withStandingGroup(user: UserInfo): UserInfo {
  const standing = user.name === ANONYMOUS_NAME ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP
  const saysSo = user.groups.includes(standing) || user.groups.includes(UNAUTHENTICATED_GROUP)
  return saysSo ? user : { ...user, groups: [...user.groups, standing] }
}
