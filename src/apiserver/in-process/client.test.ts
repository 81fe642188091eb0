import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { clusterRoleKind } from '../../api/kinds/rbac/cluster-role.ts'
import { clusterRoleBindingKind } from '../../api/kinds/rbac/cluster-role-binding.ts'
import { ApiError } from '../../api/status-error.ts'
import { clientContract } from '../../client/client.contract.ts'
import { failedWriteIndex } from '../../client/client.ts'
import { COMMIT_WRITES_MAX, SYSTEM_USER } from '../index.ts'
import { createServerFixture, type Json } from '../server.fixture.ts'
import { inProcessClient } from './client.ts'
import { WATCH_BACKLOG_EVENTS_MAX } from './watch.ts'

const REVIEW_KIND = ALL_KINDS.find(({ kind }) => kind === 'SelfSubjectAccessReview')!

const openClient = async () => {
  const api = await createServerFixture({ history: { entriesMax: 50 } })
  return { api, client: inProcessClient(api.server.objects, SYSTEM_USER), stop: () => api.store.close() }
}

describe('the in-process client', () => {
  clientContract(openClient)

  const aConfigMap = (name: string) => ({ metadata: { namespace: 'default', name }, data: { k: 'v' } })

  it('shares one object among all readers of the same version', async () => {
    const { client } = await openClient()
    const createdMap = await client.create(configMapKind, aConfigMap('a'))
    const abort = new AbortController()
    expect(await client.get(configMapKind, { namespace: 'default', name: 'a' })).toBe(createdMap)
    expect((await client.list(configMapKind)).items[0]).toBe(createdMap)
    for await (const event of client.watch(configMapKind, { sendInitialEvents: true, signal: abort.signal })) {
      expect(event.type === 'added' && event.object).toBe(createdMap)
      break
    }
  })

  it('answers requests while it sends the initial events of a watch', async () => {
    const { client } = await openClient()
    const maps = Array.from({ length: 1_000 }, (_, index) => aConfigMap(`m-${index}`))
    for (let start = 0; start < maps.length; start += COMMIT_WRITES_MAX) {
      const objects = maps.slice(start, start + COMMIT_WRITES_MAX)
      await client.commit(objects.map((object) => ({ do: 'create', kind: configMapKind, object }) as const))
    }
    const abort = new AbortController()
    let turns = 0
    const countTurn = () => {
      turns++
      turn = setImmediate(countTurn)
    }
    let turn = setImmediate(countTurn)
    let count = 0
    for await (const event of client.watch(configMapKind, { sendInitialEvents: true, signal: abort.signal })) {
      if (event.type === 'bookmark') break
      count++
    }
    clearImmediate(turn)
    expect(count).toBe(1_000)
    expect(turns).toBeGreaterThanOrEqual(3)
  })

  it('rejects unknown fields', async () => {
    const { client } = await openClient()
    await expect(client.create(configMapKind, { ...aConfigMap('a'), dta: {} } as Json)).rejects.toMatchObject({
      code: 400,
      message: expect.stringContaining('unknown field "dta"'),
    })
  })

  it('ends a watch with too many unread events, which can be resumed without a gap', async () => {
    const { server, store } = await createServerFixture()
    const client = inProcessClient(server.objects, SYSTEM_USER)
    const abort = new AbortController()
    const initialVersion = String(store.revision)
    const events = client
      .watch(configMapKind, { resourceVersion: initialVersion, signal: abort.signal })
      [Symbol.asyncIterator]()
    const firstResult = events.next()
    const maps = Array.from({ length: WATCH_BACKLOG_EVENTS_MAX + 2 * COMMIT_WRITES_MAX }, (_, index) =>
      aConfigMap(`m-${index}`),
    )
    for (let start = 0; start < maps.length; start += COMMIT_WRITES_MAX) {
      const batch = maps.slice(start, start + COMMIT_WRITES_MAX)
      await Promise.all(batch.map((object) => client.create(configMapKind, object)))
    }
    const names: string[] = []
    let version = initialVersion
    for (let result = await firstResult; !result.done; result = await events.next()) {
      if (result.value.type === 'bookmark') continue
      names.push(result.value.object.metadata.name!)
      version = result.value.object.metadata.resourceVersion!
    }
    expect(names.length).toBeGreaterThanOrEqual(WATCH_BACKLOG_EVENTS_MAX)
    expect(names.length).toBeLessThan(maps.length)
    for await (const event of client.watch(configMapKind, { resourceVersion: version, signal: abort.signal })) {
      if (event.type !== 'bookmark') names.push(event.object.metadata.name!)
      if (names.length === maps.length) break
    }
    expect(names).toEqual(maps.map(({ metadata }) => metadata.name))
  })

  it('SYS-10 rejects review kinds and subresources that a kind lacks, even in a commit', async () => {
    const { client, api } = await openClient()
    const object = await client.create(configMapKind, aConfigMap('a'))
    const { revision } = api.store
    const patch = { type: 'merge', body: { data: { k: 'w' } } } as const
    const review = { metadata: { name: 'r' }, spec: {} } as Json
    const attempts = [
      [client.update(configMapKind, object, { subresource: 'status' }), 404],
      [client.commit([{ do: 'update', kind: configMapKind, object, subresource: 'status' }]), 404],
      [client.commit([{ do: 'patch', kind: configMapKind, ref: object.metadata, patch, subresource: 'scale' }]), 404],
      [client.create(REVIEW_KIND, review), 405],
      [client.commit([{ do: 'create', kind: REVIEW_KIND, object: review }]), 405],
    ] as const
    for (const [attempt, code] of attempts) await expect(attempt).rejects.toMatchObject({ code })
    expect(api.store.revision).toBe(revision)
  })

  it('fails with 503 after the store is closed', async () => {
    const { client, api } = await openClient()
    await api.store.close()
    const error = await client.create(configMapKind, aConfigMap('a')).catch((reason) => reason)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ code: 503, reason: 'ServiceUnavailable' })
  })

  describe('with an authorizer', () => {
    const ANN = { name: 'ann', groups: ['system:authenticated'] }
    const MAPS = '/api/v1/namespaces/default/configmaps'

    /** Returns a server with the config map "a", a client of ann, and a function that grants rules to ann. */
    async function openForAnn() {
      const api = await createServerFixture({ usesRbac: true })
      const client = inProcessClient(api.server.objects, ANN, api.authorizer)
      await inProcessClient(api.server.objects, SYSTEM_USER).create(configMapKind, aConfigMap('a'))
      const grant = async (...rules: object[]) => {
        const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
        expect((await api.post(`${path}/roles`, { metadata: { name: 'r' }, rules })).status).toBe(201)
        const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' }
        const subjects = [{ kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }]
        expect((await api.post(`${path}/rolebindings`, { metadata: { name: 'r' }, roleRef, subjects })).status).toBe(
          201,
        )
      }
      return { api, client, grant }
    }
    const allow = (verbs: string[], resource = 'configmaps', apiGroup = '') => ({
      verbs,
      resources: [resource],
      apiGroups: [apiGroup],
    })
    const ref = { namespace: 'default', name: 'a' }
    const mergePatch = { type: 'merge', body: { data: { k: 'w' } } } as const
    const annHeaders = { 'impersonate-user': 'ann', 'content-type': 'application/json' }
    const statusOf = (error: unknown) => (error as ApiError).toStatus()

    it('SYS-9 denies the requests that HTTP denies, with the same Status', async () => {
      const { api, client } = await openForAnn()
      const object = JSON.stringify(aConfigMap('b'))
      const patchHeaders = { ...annHeaders, 'content-type': 'application/merge-patch+json' }
      const signal = new AbortController().signal
      const firstEvent = (request: object) =>
        client
          .watch(configMapKind, { ...request, signal })
          [Symbol.asyncIterator]()
          .next()
      const selector = 'fieldSelector=metadata.name%3Da'
      const fieldSelector = 'metadata.name=a'
      const namespace = 'default'
      const requests: readonly [() => Promise<unknown>, string, string, string?][] = [
        [() => client.get(configMapKind, ref), 'GET', `${MAPS}/a`],
        [() => client.get(namespaceKind, { name: 'default' }), 'GET', '/api/v1/namespaces/default'],
        [() => client.list(configMapKind), 'GET', '/api/v1/configmaps'],
        [() => client.list(configMapKind, { namespace, fieldSelector }), 'GET', `${MAPS}?${selector}`],
        [() => firstEvent({ namespace, fieldSelector }), 'GET', `${MAPS}?watch=1&${selector}`],
        [() => client.create(configMapKind, aConfigMap('b')), 'POST', MAPS, object],
        [() => client.update(configMapKind, aConfigMap('b')), 'PUT', `${MAPS}/b`, object],
        [() => client.patch(configMapKind, ref, mergePatch), 'PATCH', `${MAPS}/a`, '{"data":{"k":"w"}}'],
        [() => client.delete(configMapKind, ref), 'DELETE', `${MAPS}/a`],
      ]
      for (const [send, method, url, body] of requests) {
        const response = await api.call(method, url, body, method === 'PATCH' ? patchHeaders : annHeaders)
        expect(response.status, `${method} ${url}`).toBe(403)
        expect(statusOf(await send().catch((error) => error))).toEqual(response.json)
      }
    })

    it('SYS-9 allows a request as soon as a role grants it', async () => {
      const { client, grant } = await openForAnn()
      await expect(client.get(configMapKind, ref)).rejects.toMatchObject({ code: 403 })
      await grant(allow(['get', 'patch', 'list', 'watch']))
      expect((await client.get(configMapKind, ref)).data).toEqual({ k: 'v' })
      expect((await client.patch(configMapKind, ref, mergePatch)).data).toEqual({ k: 'w' })
      expect((await client.list(configMapKind, { namespace: 'default' })).items).toHaveLength(1)
      await expect(client.list(configMapKind)).rejects.toMatchObject({ code: 403 })
      await expect(client.delete(configMapKind, ref)).rejects.toMatchObject({ code: 403 })
    })

    it('SYS-9 needs permission to create for an apply that creates the object', async () => {
      const { client, grant } = await openForAnn()
      await grant(allow(['patch']))
      const apply = (name: string) => {
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: {} }
        const options = { fieldManager: 'ann' }
        return client.patch(
          configMapKind,
          { namespace: 'default', name },
          { type: 'apply', body, force: true },
          options,
        )
      }
      await expect(apply('a')).resolves.toBeDefined()
      await expect(apply('b')).rejects.toMatchObject({
        code: 403,
        message: expect.stringContaining('User "ann" cannot create resource "configmaps"'),
      })
    })

    it('SYS-9 authorizes a commit and each of its writes, and names the denied write', async () => {
      const { api, client, grant } = await openForAnn()
      const writes = [
        { do: 'patch', kind: configMapKind, ref, patch: mergePatch },
        { do: 'delete', kind: configMapKind, ref },
      ] as const
      await grant(allow(['patch']))
      await expect(client.commit(writes)).rejects.toMatchObject({
        message: expect.stringContaining('cannot create resource "commits"'),
      })
      await client.commit([writes[0]]) // a single write needs no permission to commit
      const admin = inProcessClient(api.server.objects, SYSTEM_USER)
      await admin.create(clusterRoleKind, {
        metadata: { name: 'commits' },
        rules: [allow(['create'], 'commits', 'stowage.dev')],
      })
      await admin.create(clusterRoleBindingKind, {
        metadata: { name: 'commits' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'commits' },
        subjects: [{ kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }],
      })
      const { revision } = api.store
      const error = await client.commit(writes).catch((reason) => reason)
      expect(error).toMatchObject({
        code: 403,
        message: expect.stringContaining('cannot delete resource "configmaps"'),
      })
      expect(failedWriteIndex(error)).toBe(1)
      expect(api.store.revision).toBe(revision)
    })
  })
})
