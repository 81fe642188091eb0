import { describe, expect, it } from 'vitest'
import type { AuthorizationAttributes } from './authorizer.ts'
import { forbidden } from './errors.ts'
import { ANONYMOUS, type UserInfo } from './user.ts'

const ANN: UserInfo = { name: 'ann', groups: ['system:authenticated'] }

describe('forbidden', () => {
  const secretAttributes = { user: ANN, verb: 'get', group: '', version: 'v1', resource: 'secrets' }
  const message = (attributes: AuthorizationAttributes, reason?: string) => forbidden(attributes, reason).message

  it('SYS-9 returns the Kubernetes message', () => {
    expect(message({ ...secretAttributes, name: 'token', namespace: 'shop' })).toBe(
      'secrets "token" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "shop"',
    )
    expect(message({ ...secretAttributes, verb: 'list', group: 'storage.k8s.io', resource: 'storageclasses' })).toBe(
      'storageclasses.storage.k8s.io is forbidden: User "ann" cannot list resource "storageclasses" in API group "storage.k8s.io" at the cluster scope',
    )
    expect(message({ ...secretAttributes, verb: 'update', resource: 'pods', subresource: 'status', name: 'p' })).toBe(
      'pods "p" is forbidden: User "ann" cannot update resource "pods/status" in API group "" at the cluster scope',
    )
    expect(message({ user: ANONYMOUS, verb: 'get', path: '/metrics' })).toBe(
      'forbidden: User "system:anonymous" cannot get path "/metrics"',
    )
  })

  it('appends the reason of the authorizer', () => {
    expect(message({ user: ANN, verb: 'get', path: '/x' }, 'no role grants it')).toBe(
      'forbidden: User "ann" cannot get path "/x": no role grants it',
    )
  })

  it('returns the code, reason and details of a Status', () => {
    expect(forbidden({ ...secretAttributes, group: 'g', name: 'n' })).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      details: { name: 'n', group: 'g', kind: 'secrets' },
    })
    expect(forbidden(secretAttributes).details).toEqual({ kind: 'secrets' })
  })

  it('escapes HTML in the message', () => {
    expect(message({ user: ANN, verb: 'get', path: '/<script>&' })).toContain('path "/&lt;script&gt;&amp;"')
  })
})
