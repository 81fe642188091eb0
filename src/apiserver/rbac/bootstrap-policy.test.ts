import { describe, expect, it } from 'vitest'
import { ANONYMOUS, type UserInfo } from '../security/index.ts'
import { createBootstrapAuthorizer } from './bootstrap-authorizer.fixture.ts'

const ADMIN: UserInfo = { name: 'stowage-admin', groups: ['system:masters', 'system:authenticated'] }
const VIEWER: UserInfo = { name: 'stowage-viewer', groups: ['stowage:viewers', 'system:authenticated'] }
const ANN: UserInfo = { name: 'ann', groups: ['system:authenticated'] }

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'impersonate', '*']
const READ_VERBS = VERBS.slice(0, 3)
const WRITE_VERBS = VERBS.slice(3)

const authorizer = createBootstrapAuthorizer()

/** The request has the form `get pods/log`, `create selfsubjectreviews.authentication.k8s.io` or `get /metrics`. */
function isAllowed(user: UserInfo, request: string): boolean {
  const [verb = '', target = ''] = request.split(' ')
  const { allowed } = authorizer.authorize({ user, verb, ...attributesOf(target) })
  return allowed
}

function attributesOf(target: string) {
  if (target.startsWith('/')) return { path: target }
  const [, resource = '', subresource, group = ''] = /^([^./]+)(?:\/([^.]+))?(?:\.(.+))?$/.exec(target) ?? []
  return { group, version: 'v1', resource, subresource, namespace: 'shop' }
}

describe('the bootstrap authorizer', () => {
  it('allows every request of system:masters', () => {
    for (const verb of VERBS) expect(isAllowed(ADMIN, `${verb} secrets`)).toBe(true)
    expect(isAllowed(ADMIN, '* *')).toBe(true)
    expect(isAllowed(ADMIN, 'post /anything')).toBe(true)
  })

  it('SYS-9 lets kube-controller-manager request tokens for its controllers, and limits a controller to its own rules', () => {
    const manager: UserInfo = { name: 'system:kube-controller-manager', groups: ['system:authenticated'] }
    for (const request of [
      'create serviceaccounts/token',
      'create serviceaccounts',
      'watch storageclasses.storage.k8s.io',
    ])
      expect(isAllowed(manager, request), request).toBe(true)
    for (const request of ['delete pods', 'update persistentvolumeclaims', 'update leases.coordination.k8s.io'])
      expect(isAllowed(manager, request), request).toBe(false)
    const collector: UserInfo = { name: 'system:serviceaccount:kube-system:pod-garbage-collector', groups: [] }
    expect(isAllowed(collector, 'delete pods')).toBe(true)
    expect(isAllowed(collector, 'delete nodes')).toBe(false)
  })

  it("SYS-9 allows ServiceAccounts, but not every authenticated user, to read the issuer's keys", () => {
    const account: UserInfo = { name: 'system:serviceaccount:shop:robot', groups: ['system:serviceaccounts'] }
    expect(isAllowed(account, 'get /openid/v1/jwks')).toBe(true)
    expect(isAllowed(ANN, 'get /openid/v1/jwks')).toBe(false)
  })

  it('allows viewers to read resources and paths', () => {
    for (const verb of READ_VERBS) {
      expect(isAllowed(VIEWER, `${verb} persistentvolumeclaims`)).toBe(true)
      expect(isAllowed(VIEWER, `${verb} storageclasses.storage.k8s.io`)).toBe(true)
    }
    expect(isAllowed(VIEWER, 'get persistentvolumeclaims/status')).toBe(true)
    expect(isAllowed(VIEWER, 'get pods/log')).toBe(true)
    expect(isAllowed(VIEWER, 'get /metrics')).toBe(true)
  })

  it('SYS-9 denies viewers every request for secrets and for the wildcard resource', () => {
    for (const verb of VERBS) {
      expect(isAllowed(VIEWER, `${verb} secrets`)).toBe(false)
      expect(isAllowed(VIEWER, `${verb} secrets/status`)).toBe(false)
      expect(isAllowed(VIEWER, `${verb} *`)).toBe(false)
    }
  })

  it('SYS-9 does not allow viewers to write or to connect to pods', () => {
    for (const verb of WRITE_VERBS) expect(isAllowed(VIEWER, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(isAllowed(VIEWER, 'post /metrics')).toBe(false)
    for (const subresource of ['pods/exec', 'pods/attach', 'pods/portforward', 'nodes/proxy', 'pods/*'])
      expect(isAllowed(VIEWER, `get ${subresource}`)).toBe(false)
  })

  const DISCOVERY = ['/api', '/api/v1', '/apis', '/apis/storage.k8s.io/v1', '/openapi/v2', '/openapi/v3/api/v1']
  const PUBLIC = ['/healthz', '/livez', '/readyz', '/version']

  it('allows all authenticated users to use discovery and to review their own permissions', () => {
    for (const user of [ANN, VIEWER]) {
      for (const path of [...DISCOVERY, ...PUBLIC]) expect(isAllowed(user, `get ${path}`)).toBe(true)
      expect(isAllowed(user, 'create selfsubjectreviews.authentication.k8s.io')).toBe(true)
      expect(isAllowed(user, 'create selfsubjectaccessreviews.authorization.k8s.io')).toBe(true)
      expect(isAllowed(user, 'create selfsubjectrulesreviews.authorization.k8s.io')).toBe(true)
    }
  })

  it('SYS-9 denies users without further groups other requests for resources and paths', () => {
    for (const verb of VERBS) expect(isAllowed(ANN, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(isAllowed(ANN, 'create subjectaccessreviews.authorization.k8s.io')).toBe(false)
    expect(isAllowed(ANN, 'create selfsubjectreviews')).toBe(false)
    expect(isAllowed(ANN, 'get selfsubjectreviews.authentication.k8s.io')).toBe(false)
    for (const request of ['get /metrics', 'get /', 'post /api', 'get /apiother', 'get /debug/pprof'])
      expect(isAllowed(ANN, request)).toBe(false)
  })

  it('SYS-9 allows anonymous users to read only health and version', () => {
    for (const path of PUBLIC) expect(isAllowed(ANONYMOUS, `get ${path}`)).toBe(true)
    for (const path of [...DISCOVERY, '/metrics', '/', '/healthzother', '/readyz/store'])
      expect(isAllowed(ANONYMOUS, `get ${path}`)).toBe(false)
    for (const verb of VERBS) expect(isAllowed(ANONYMOUS, `${verb} persistentvolumeclaims`)).toBe(false)
    expect(isAllowed(ANONYMOUS, 'create selfsubjectreviews.authentication.k8s.io')).toBe(false)
  })
})
