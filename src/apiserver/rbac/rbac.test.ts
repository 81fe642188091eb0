// Tests RBAC through the API server: users have the permissions that bindings grant, and cannot grant those that they do not
// hold.
import { beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const CLUSTER_ROLES = `${RBAC}/clusterroles`
const CLUSTER_BINDINGS = `${RBAC}/clusterrolebindings`
const ROLES = `${RBAC}/namespaces/default/roles`
const BINDINGS = `${RBAC}/namespaces/default/rolebindings`
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const SECRETS = '/api/v1/namespaces/default/secrets'

const READ_CLAIMS = { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list'] }
const FULL_ACCESS = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }
const ANN = { kind: 'User', name: 'ann' }
const aRole = (name: string, ...rules: object[]) => ({ metadata: { name }, rules })
const aBinding = (name: string, kind: string, role: string, subjects: object[] = [ANN]) => ({
  metadata: { name },
  subjects,
  roleRef: { kind, name: role },
})
const aClaim = (name: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
})

describe('RBAC', () => {
  let api: ServerFixture
  beforeEach(async () => {
    api = await createServerFixture({ usesRbac: true })
  })

  const userHeaders = (user: string, groups: readonly string[] = []) => ({
    'impersonate-user': user,
    ...(groups.length > 0 ? { 'impersonate-group': groups[0]! } : {}),
  })
  const create = async (url: string, body: object, headers = {}): Promise<Json> => {
    const response = await api.post(url, body, headers)
    expect(response.json).toMatchObject({ metadata: {} })
    expect(response.status).toBe(201)
    return response.json
  }
  /** Waits until the index has the change, which the server follows by a watch. */
  const waitForStatus = async (status: number, send: () => Promise<{ status: number }>) =>
    api.waitUntil(async () => (await send()).status === status, `status ${status}`)

  it('SYS-9 denies a request that no binding allows, without revealing whether the object exists', async () => {
    await create(CLAIMS, aClaim('a'))
    for (const name of ['a', 'missing']) {
      const { status, json } = await api.get(`${CLAIMS}/${name}`, userHeaders('ann'))
      expect(status).toBe(403)
      expect(json.message).toBe(
        `persistentvolumeclaims "${name}" is forbidden: User "ann" cannot get resource "persistentvolumeclaims" in API group "" in the namespace "default"`,
      )
    }
  })

  it('SYS-9 allows the requests that a role binding grants, in its namespace only, until the binding is deleted', async () => {
    await create(ROLES, aRole('reader', READ_CLAIMS))
    await create(BINDINGS, aBinding('readers', 'Role', 'reader'))
    await waitForStatus(200, () => api.get(CLAIMS, userHeaders('ann')))
    expect((await api.get('/api/v1/persistentvolumeclaims', userHeaders('ann'))).status).toBe(403)
    expect((await api.get('/api/v1/namespaces/kube-system/persistentvolumeclaims', userHeaders('ann'))).status).toBe(
      403,
    )
    expect((await api.get(`${CLAIMS}?watch=1`, userHeaders('ann'))).status).toBe(403)
    expect((await api.get(CLAIMS, userHeaders('bob'))).status).toBe(403)
    await api.delete(`${BINDINGS}/readers`)
    await waitForStatus(403, () => api.get(CLAIMS, userHeaders('ann')))
  })

  it('SYS-9 applies a cluster role within the namespace of a role binding', async () => {
    await create(CLUSTER_ROLES, aRole('everything', FULL_ACCESS))
    await create(BINDINGS, aBinding('all', 'ClusterRole', 'everything', [{ kind: 'Group', name: 'team' }]))
    await waitForStatus(200, () => api.get(SECRETS, userHeaders('ann', ['team'])))
    expect((await api.get('/api/v1/nodes', userHeaders('ann', ['team']))).status).toBe(403)
    expect((await api.get('/metrics', userHeaders('ann', ['team']))).status).toBe(403)
  })

  it("SYS-9 grants a role to a service account in the binding's namespace", async () => {
    await create(ROLES, aRole('reader', READ_CLAIMS))
    await create(BINDINGS, aBinding('robots', 'Role', 'reader', [{ kind: 'ServiceAccount', name: 'robot' }]))
    await waitForStatus(200, () => api.get(CLAIMS, userHeaders('system:serviceaccount:default:robot')))
    expect((await api.get(CLAIMS, userHeaders('system:serviceaccount:other:robot'))).status).toBe(403)
  })

  it('SYS-9 stores a binding to a role that does not exist, which grants nothing and is named in the denial', async () => {
    await create(CLUSTER_BINDINGS, aBinding('dangling', 'ClusterRole', 'missing'))
    await waitForStatus(403, () => api.get(CLAIMS, userHeaders('ann')))
    await api.waitUntil(
      async () =>
        (await api.get(CLAIMS, userHeaders('ann'))).json.message.endsWith(
          ': RBAC: clusterrole.rbac.authorization.k8s.io "missing" not found',
        ),
      'the reason',
    )
  })

  it('SYS-9 allows a list with a name selector, but neither the whole list nor its deletion, if a rule names the object', async () => {
    const secret = (name: string) => ({ metadata: { name }, stringData: { key: 'value' } })
    await create(SECRETS, secret('a'))
    await create(SECRETS, secret('b'))
    await create(
      ROLES,
      aRole('one', { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['get', 'list', 'delete'] }),
    )
    await create(BINDINGS, aBinding('one', 'Role', 'one'))
    await waitForStatus(200, () => api.get(`${SECRETS}?fieldSelector=metadata.name%3Da`, userHeaders('ann')))
    const { json } = await api.get(`${SECRETS}?fieldSelector=metadata.name%3Da`, userHeaders('ann'))
    expect(json.items.map(({ metadata }: Json) => metadata.name)).toEqual(['a'])
    expect((await api.get(SECRETS, userHeaders('ann'))).status).toBe(403)
    const contradiction = 'metadata.name%3Da%2Cmetadata.name!%3Da'
    expect((await api.get(`${SECRETS}?fieldSelector=${contradiction}`, userHeaders('ann'))).json.items).toEqual([])
    const collection = `${SECRETS}?fieldSelector=metadata.name%3Da`
    expect((await api.call('DELETE', collection, undefined, userHeaders('ann'))).json.message).toContain(
      'deletecollection',
    )
  })

  it('SYS-9 does not create an object by an apply if the user may only patch', async () => {
    await create(ROLES, aRole('patcher', { ...READ_CLAIMS, verbs: ['get', 'patch', 'update'] }))
    await create(BINDINGS, aBinding('patchers', 'Role', 'patcher'))
    await waitForStatus(404, () => api.get(`${CLAIMS}/x`, userHeaders('ann')))
    const config = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...aClaim('x') }
    const { status, json } = await api.call('PATCH', `${CLAIMS}/x?fieldManager=test`, JSON.stringify(config), {
      ...userHeaders('ann'),
      'content-type': 'application/apply-patch+yaml',
    })
    expect(json.message).toContain('cannot create resource "persistentvolumeclaims"')
    expect(status).toBe(403)
  })

  describe('escalation', () => {
    beforeEach(async () => {
      const manage = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ['*'] }
      const manageWithoutEscalation = { ...manage, verbs: ['get', 'create', 'update', 'patch', 'delete'] }
      await create(ROLES, aRole('manager', manageWithoutEscalation, READ_CLAIMS))
      await create(BINDINGS, aBinding('managers', 'Role', 'manager'))
      await waitForStatus(200, () => api.get(CLAIMS, userHeaders('ann')))
    })

    it('SYS-9 lets a user grant rules that the user holds', async () => {
      await create(ROLES, aRole('reader', READ_CLAIMS), userHeaders('ann'))
      await create(BINDINGS, aBinding('readers', 'Role', 'reader', [{ kind: 'User', name: 'bob' }]), userHeaders('ann'))
    })

    it('SYS-9 rejects a create, update, patch, apply or dry run of a role with rules that the user does not hold', async () => {
      await create(ROLES, aRole('reader', READ_CLAIMS))
      const denial = (missing: string) =>
        `roles.rbac.authorization.k8s.io "reader" is forbidden: user "ann" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n${missing}`
      const extendedRole = aRole('reader', READ_CLAIMS, { ...READ_CLAIMS, resources: ['secrets'] })
      const expected = denial('{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}')
      for (const query of ['', '?dryRun=All']) {
        expect((await api.put(`${ROLES}/reader${query}`, extendedRole, userHeaders('ann'))).json.message).toBe(expected)
      }
      const patch = [{ op: 'add', path: '/rules/-', value: FULL_ACCESS }]
      const sendPatch = (type: string, body: object, query = '') =>
        api.call('PATCH', `${ROLES}/reader${query}`, JSON.stringify(body), {
          ...userHeaders('ann'),
          'content-type': type,
        })
      expect((await sendPatch('application/json-patch+json', patch)).json.message).toBe(
        denial('{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'),
      )
      const config = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', ...extendedRole }
      expect((await sendPatch('application/apply-patch+yaml', config, '?fieldManager=t&force=true')).json.message).toBe(
        expected,
      )
      expect((await api.post(ROLES, { ...extendedRole, metadata: { name: 'new' } }, userHeaders('ann'))).status).toBe(
        403,
      )
    })

    it('SYS-9 rejects a binding to a role with more rules, unless the user may bind that role', async () => {
      const binding = aBinding('x', 'ClusterRole', 'cluster-admin')
      const rejectedResponse = await api.post(BINDINGS, binding, userHeaders('ann'))
      expect(rejectedResponse.status).toBe(403)
      expect(rejectedResponse.json.message).toContain('attempting to grant RBAC permissions not currently held')
      expect((await api.post(BINDINGS, aBinding('x', 'ClusterRole', 'missing'), userHeaders('ann'))).status).toBe(404)

      const bind = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['bind'] }
      await create(ROLES, aRole('binder', { ...bind, resourceNames: ['cluster-admin'] }))
      await create(BINDINGS, aBinding('binders', 'Role', 'binder'))
      await waitForStatus(201, () => api.post(BINDINGS, binding, userHeaders('ann')))
    })

    it('SYS-9 lets a user with the verb escalate write any role', async () => {
      const escalate = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['escalate'] }
      await create(ROLES, aRole('escalator', escalate))
      await create(BINDINGS, aBinding('escalators', 'Role', 'escalator'))
      await waitForStatus(201, () => api.post(ROLES, aRole('all', FULL_ACCESS), userHeaders('ann')))
    })

    it('SYS-9 rejects a role with too many combinations to check', async () => {
      const names = Array.from({ length: 400 }, (_, index) => `n${index}`)
      const role = aRole('huge', { apiGroups: [''], resources: names, verbs: names })
      const { status, json } = await api.post(ROLES, role)
      expect(status).toBe(422)
      expect(json.message).toContain('at most 100000 combinations')
    })
  })

  describe('aggregation', () => {
    it('SYS-9 fills the built-in roles from their labels: admin contains edit, which contains view', async () => {
      const readRules = async (name: string): Promise<Json[]> => (await api.get(`${CLUSTER_ROLES}/${name}`)).json.rules
      const allows = (rules: Json[], verb: string, resource: string) =>
        rules.some(({ verbs, resources }) => verbs.includes(verb) && resources.includes(resource))
      await api.waitUntil(async () => allows(await readRules('admin'), 'get', 'persistentvolumeclaims'), 'the rules')
      expect(allows(await readRules('view'), 'get', 'secrets')).toBe(false)
      expect(allows(await readRules('edit'), 'get', 'secrets')).toBe(true)
      expect(allows(await readRules('edit'), 'create', 'rolebindings')).toBe(false)
      expect(allows(await readRules('admin'), 'create', 'rolebindings')).toBe(true)
    })

    it('SYS-9 follows a role with the label and overwrites edited rules', async () => {
      const label = 'rbac.authorization.k8s.io/aggregate-to-view'
      await create(CLUSTER_ROLES, {
        metadata: { name: 'snapshots', labels: { [label]: 'true' } },
        rules: [{ apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ['get'] }],
      })
      const hasRule = async (role: string) =>
        (await api.get(`${CLUSTER_ROLES}/${role}`)).text.includes('volumesnapshots')
      await api.waitUntil(() => hasRule('admin'), 'the rule in admin')
      await api.patch(`${CLUSTER_ROLES}/view`, { rules: [] }, 'merge')
      await api.waitUntil(() => hasRule('view'), 'the rule in view')
      await api.delete(`${CLUSTER_ROLES}/snapshots`)
      await api.waitUntil(async () => !(await hasRule('admin')), 'the removal')
    })
  })

  it('SYS-9 SelfSubjectRulesReview lists the rules of the user in a namespace', async () => {
    await create(ROLES, aRole('reader', READ_CLAIMS))
    await create(BINDINGS, aBinding('readers', 'Role', 'reader'))
    await waitForStatus(200, () => api.get(CLAIMS, userHeaders('ann')))
    const url = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
    const { json } = await api.post(url, { spec: { namespace: 'default' } }, userHeaders('ann'))
    expect(json.status.resourceRules).toContainEqual({
      verbs: READ_CLAIMS.verbs,
      apiGroups: [''],
      resources: READ_CLAIMS.resources,
    })
    expect(json.status.nonResourceRules.flatMap(({ nonResourceURLs }: Json) => nonResourceURLs)).toContain('/version')
  })
})
