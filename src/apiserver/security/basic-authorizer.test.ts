import { describe, expect, it } from 'vitest'
import type { AuthorizationAttributes } from './authorize.ts'
import { createBasicAuthorizer } from './basic-authorizer.ts'
import { forbidden } from './errors.ts'
import { ANONYMOUS, type UserInfo } from './user.ts'

const ADMIN: UserInfo = { name: 'stowage-admin', groups: ['system:masters', 'system:authenticated'] }
const VIEWER: UserInfo = { name: 'stowage-viewer', groups: ['stowage:viewers', 'system:authenticated'] }
const ANN: UserInfo = { name: 'ann', groups: ['system:authenticated'] }

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'impersonate', '*']
const READS = VERBS.slice(0, 3)
const WRITES = VERBS.slice(3)

/** `'get pods/log'`, `'create selfsubjectreviews.authentication.k8s.io'`, `'get /metrics'`. */
function may(user: UserInfo, asked: string): boolean {
  const [verb = '', what = ''] = asked.split(' ')
  const { allowed } = createBasicAuthorizer().authorize({ user, verb, ...target(what) }) as { allowed: boolean }
  return allowed
}

function target(what: string) {
  if (what.startsWith('/')) return { path: what }
  const [, resource = '', subresource, group = ''] = /^([^./]+)(?:\/([^.]+))?(?:\.(.+))?$/.exec(what) ?? []
  return { group, version: 'v1', resource, subresource, namespace: 'shop' }
}

describe('the basic authorizer', () => {
  it('lets masters do everything', () => {
    for (const verb of VERBS) expect(may(ADMIN, `${verb} secrets`)).toBe(true)
    expect(may(ADMIN, '* *')).toBe(true)
    expect(may(ADMIN, 'post /anything')).toBe(true)
  })

  it('lets viewers read resources and paths', () => {
    for (const verb of READS) {
      expect(may(VIEWER, `${verb} persistentvolumeclaims`)).toBe(true)
      expect(may(VIEWER, `${verb} storageclasses.storage.k8s.io`)).toBe(true)
    }
    expect(may(VIEWER, 'get persistentvolumeclaims/status')).toBe(true)
    expect(may(VIEWER, 'get pods/log')).toBe(true)
    expect(may(VIEWER, 'get /metrics')).toBe(true)
  })

  it('SYS-9 does not let viewers read secrets, by name or with a wildcard', () => {
    for (const verb of VERBS) {
      expect(may(VIEWER, `${verb} secrets`)).toBe(false)
      expect(may(VIEWER, `${verb} secrets/status`)).toBe(false)
      expect(may(VIEWER, `${verb} *`)).toBe(false)
    }
  })

  it('SYS-9 does not let viewers change anything or connect to pods', () => {
    for (const verb of WRITES) expect(may(VIEWER, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(may(VIEWER, 'post /metrics')).toBe(false)
    for (const channel of ['pods/exec', 'pods/attach', 'pods/portforward', 'nodes/proxy', 'pods/*'])
      expect(may(VIEWER, `get ${channel}`)).toBe(false)
  })

  const DISCOVERY = ['/api', '/api/v1', '/apis', '/apis/storage.k8s.io/v1', '/openapi/v2', '/openapi/v3/api/v1']
  const PUBLIC = ['/healthz', '/livez', '/readyz', '/livez/ping', '/readyz/store', '/version']

  it('lets every user use discovery and review their own rights', () => {
    for (const user of [ANN, VIEWER]) {
      for (const path of [...DISCOVERY, ...PUBLIC]) expect(may(user, `get ${path}`)).toBe(true)
      expect(may(user, 'create selfsubjectreviews.authentication.k8s.io')).toBe(true)
      expect(may(user, 'create selfsubjectaccessreviews.authorization.k8s.io')).toBe(true)
      expect(may(user, 'create selfsubjectrulesreviews.authorization.k8s.io')).toBe(true)
    }
  })

  it('SYS-9 lets a user without further groups do nothing else', () => {
    for (const verb of VERBS) expect(may(ANN, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(may(ANN, 'create subjectaccessreviews.authorization.k8s.io')).toBe(false)
    expect(may(ANN, 'create selfsubjectreviews')).toBe(false)
    expect(may(ANN, 'get selfsubjectreviews.authentication.k8s.io')).toBe(false)
    for (const asked of ['get /metrics', 'get /', 'post /api', 'get /apiother', 'get /debug/pprof'])
      expect(may(ANN, asked)).toBe(false)
  })

  it('SYS-9 lets anonymous users see health and version, and nothing else', () => {
    for (const path of PUBLIC) expect(may(ANONYMOUS, `get ${path}`)).toBe(true)
    for (const path of [...DISCOVERY, '/metrics', '/', '/healthzother'])
      expect(may(ANONYMOUS, `get ${path}`)).toBe(false)
    for (const verb of VERBS) expect(may(ANONYMOUS, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(may(ANONYMOUS, 'create selfsubjectreviews.authentication.k8s.io')).toBe(false)
  })
})

describe('a refusal', () => {
  const aQuestion = { user: ANN, verb: 'get', group: '', version: 'v1', resource: 'secrets' }
  const message = (attributes: AuthorizationAttributes, because?: string) => forbidden(attributes, because).message

  it('SYS-9 has the message of Kubernetes', () => {
    expect(message({ ...aQuestion, name: 'token', namespace: 'shop' })).toBe(
      'secrets "token" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "shop"',
    )
    expect(message({ ...aQuestion, verb: 'list', group: 'storage.k8s.io', resource: 'storageclasses' })).toBe(
      'storageclasses.storage.k8s.io is forbidden: User "ann" cannot list resource "storageclasses" in API group "storage.k8s.io" at the cluster scope',
    )
    expect(message({ ...aQuestion, verb: 'update', resource: 'pods', subresource: 'status', name: 'p' })).toBe(
      'pods "p" is forbidden: User "ann" cannot update resource "pods/status" in API group "" at the cluster scope',
    )
    expect(message({ user: ANONYMOUS, verb: 'get', path: '/metrics' })).toBe(
      'forbidden: User "system:anonymous" cannot get path "/metrics"',
    )
  })

  it('contains the reason of the authorizer, if any', () => {
    expect(message({ user: ANN, verb: 'get', path: '/x' }, 'no role grants it')).toBe(
      'forbidden: User "ann" cannot get path "/x": no role grants it',
    )
  })

  it('has code, reason and details of a Status', () => {
    expect(forbidden({ ...aQuestion, group: 'g', name: 'n' })).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      details: { name: 'n', group: 'g', kind: 'secrets' },
    })
    expect(forbidden(aQuestion).details).toEqual({ kind: 'secrets' })
  })

  it('never contains HTML', () => {
    expect(message({ user: ANN, verb: 'get', path: '/<script>&' })).toContain('path "/&lt;script&gt;&amp;"')
  })
})
