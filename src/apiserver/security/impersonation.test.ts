import { describe, expect, it } from 'vitest'
import { createBootstrapAuthorizer } from '../rbac/bootstrap-authorizer.fixture.ts'
import type { AuthorizationAttributes, Authorizer } from './authorizer.ts'
import { type DistinctHeaders, resolveImpersonation } from './impersonation.ts'
import type { UserInfo } from './user.ts'

const ADMIN: UserInfo = { name: 'stowage-admin', groups: ['system:masters', 'system:authenticated'] }
const VIEWER: UserInfo = { name: 'stowage-viewer', groups: ['stowage:viewers', 'system:authenticated'] }

const impersonateAsAdmin = (headers: DistinctHeaders) =>
  resolveImpersonation({ user: ADMIN, headers, authorizer: createBootstrapAuthorizer() })

describe('impersonation', () => {
  it('keeps the user of a request without impersonation headers', async () => {
    expect(await impersonateAsAdmin({ accept: ['*/*'], 'impersonate-user': [''] })).toEqual({ is: 'self', user: ADMIN })
  })

  it('replaces the user, and also returns the original one', async () => {
    expect(await impersonateAsAdmin({ 'impersonate-user': ['ann'] })).toEqual({
      is: 'impersonated',
      user: { name: 'ann', groups: ['system:authenticated'] },
      by: ADMIN,
    })
  })

  it('sets groups, uid and extra values, one per header value', async () => {
    const impersonation = await impersonateAsAdmin({
      'impersonate-user': ['ann'],
      'impersonate-group': ['shop', 'a, b'],
      'impersonate-uid': ['u-1'],
      'impersonate-extra-scopes': ['view', 'edit'],
      'impersonate-extra-example.org%2fteam': ['blue'],
      'impersonate-extra-50%': ['off'],
      'impersonate-extra-__proto__': ['harmless'],
    })
    expect(impersonation).toMatchObject({
      user: { name: 'ann', groups: ['shop', 'a, b', 'system:authenticated'], uid: 'u-1' },
    })
    const { extra = {} } = (impersonation as { user: UserInfo }).user
    expect(Object.entries(extra)).toEqual([
      ['scopes', ['view', 'edit']],
      ['example.org/team', ['blue']],
      ['50%', ['off']],
      ['__proto__', ['harmless']],
    ])
  })

  it.each([
    ['ann', [], ['system:authenticated']],
    ['ann', ['system:unauthenticated'], ['system:unauthenticated']],
    ['ann', ['system:authenticated'], ['system:authenticated']],
    ['system:anonymous', [], ['system:unauthenticated']],
    ['system:anonymous', ['shop'], ['shop', 'system:unauthenticated']],
    [
      'system:serviceaccount:shop:web',
      [],
      ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    ],
    ['system:serviceaccount:shop:web', ['own'], ['own', 'system:authenticated']],
    ['system:serviceaccount:shop', [], ['system:authenticated']],
  ])('of %s with the groups %j results in the groups %j', async (name, requestedGroups, groups) => {
    const headers = {
      'impersonate-user': [name],
      ...(requestedGroups.length > 0 && { 'impersonate-group': requestedGroups }),
    }
    expect(await impersonateAsAdmin(headers)).toMatchObject({ user: { name, groups } })
  })

  it('SYS-9 is forbidden without the verb impersonate', async () => {
    const authorizer = createBootstrapAuthorizer()
    const headers = { 'impersonate-user': ['stowage-admin'], 'impersonate-group': ['system:masters'] }
    expect(await resolveImpersonation({ user: VIEWER, headers, authorizer })).toMatchObject({
      is: 'rejected',
      status: {
        code: 403,
        message:
          'users "stowage-admin" is forbidden: User "stowage-viewer" cannot impersonate resource "users" in API group "" at the cluster scope',
      },
    })
  })

  it('SYS-9 requires permission for every user, group, UID and extra value', async () => {
    const allHeaders = {
      'impersonate-user': ['ann'],
      'impersonate-group': ['shop', 'staff'],
      'impersonate-extra-scopes': ['view'],
      'impersonate-uid': ['u-1'],
    }
    const checks = ['users ann', 'groups shop', 'groups staff', 'userextras/scopes view', 'uids u-1']
    for (const forbiddenCheck of checks) {
      const authorizer = authorizerForbidding(forbiddenCheck)
      const impersonation = await resolveImpersonation({ user: VIEWER, headers: allHeaders, authorizer })
      expect(impersonation.is).toBe('rejected')
      expect(authorizer.checks).toEqual(checks.slice(0, checks.indexOf(forbiddenCheck) + 1))
    }
    const authorizer = authorizerForbidding('nothing')
    await resolveImpersonation({ user: VIEWER, headers: allHeaders, authorizer })
    expect(authorizer.checks).toEqual(checks)
  })

  it('requires permission for a service account in its namespace', async () => {
    const authorizer = authorizerForbidding('nothing')
    const headers = { 'impersonate-user': ['system:serviceaccount:shop:web'] }
    await resolveImpersonation({ user: VIEWER, headers, authorizer })
    expect(authorizer.checks).toEqual(['serviceaccounts shop/web'])
  })

  it.each(['impersonate-group', 'impersonate-uid', 'impersonate-extra-scopes'])(
    'is rejected with 400 if there is %s but no user',
    async (header) => {
      expect(await impersonateAsAdmin({ [header]: ['x'] })).toEqual({
        is: 'rejected',
        status: {
          code: 400,
          reason: 'BadRequest',
          message: `requested ${header} without impersonating a user: set Impersonate-User as well`,
        },
      })
    },
  )
})

function authorizerForbidding(forbiddenCheck: string): Authorizer & { checks: string[] } {
  const checks: string[] = []
  const describeCheck = (attributes: AuthorizationAttributes) => {
    if (attributes.path !== undefined || attributes.verb !== 'impersonate') throw new Error('unexpected request')
    const { resource, subresource, namespace, name } = attributes
    return `${resource}${subresource ? `/${subresource}` : ''} ${namespace ? `${namespace}/` : ''}${name}`
  }
  return {
    checks,
    authorize(attributes) {
      checks.push(describeCheck(attributes))
      return { allowed: describeCheck(attributes) !== forbiddenCheck }
    },
  }
}
