// Tests the review kinds, which kubectl auth whoami, kubectl auth can-i and delegated authorizers use.
import { describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { manualClock } from '../base/manual-clock.ts'
import { openMemoryStore } from '../store/index.ts'
import { createBootstrapAuthorizer } from './rbac/bootstrap-authorizer.fixture.ts'
import { createResources } from './resources.ts'
import { performReview } from './reviews.ts'
import type { Authenticator, UserInfo } from './security/index.ts'
import { createServerFixture, type Json } from './server.fixture.ts'

const VIEWER: UserInfo = { name: 'ann', uid: 'u1', groups: ['stowage:viewers', 'system:authenticated'] }
const authenticator = {
  authenticateToken: (token: string) => (token === 'good' ? { user: VIEWER } : undefined),
} as unknown as Authenticator
const clock = manualClock()
const store = await openMemoryStore({ clock })
const deps = { store, clock, authenticator, authorizer: createBootstrapAuthorizer() }
const resources = createResources(ALL_KINDS)

const createReview = (plural: string, body: object, { user = VIEWER, namespace = '' } = {}): Promise<Json> => {
  const group = plural.includes('access') || plural.includes('rules') ? 'authorization.k8s.io' : 'authentication.k8s.io'
  return performReview(deps, resources.find(group, 'v1', plural)!, namespace, user, { metadata: {}, ...body })
}

describe('reviews', () => {
  it("SYS-2 SelfSubjectReview returns the request's user", async () => {
    expect((await createReview('selfsubjectreviews', {})).status.userInfo).toEqual({
      username: 'ann',
      uid: 'u1',
      groups: ['stowage:viewers', 'system:authenticated'],
    })
  })

  it("TokenReview returns a token's user, reports an unknown token, and rejects a missing one", async () => {
    expect((await createReview('tokenreviews', { spec: { token: 'good' } })).status).toMatchObject({
      authenticated: true,
      user: { username: 'ann' },
    })
    expect((await createReview('tokenreviews', { spec: { token: 'stolen' } })).status).toMatchObject({
      authenticated: false,
    })
    await expect(createReview('tokenreviews', { spec: {} })).rejects.toMatchObject({ code: 422 })
  })

  it.each([
    ['get', 'persistentvolumes', true],
    ['delete', 'persistentvolumes', false],
    ['get', 'secrets', false],
  ])('SYS-2 SelfSubjectAccessReview of a viewer for %s %s returns allowed: %s', async (verb, resource, allowed) => {
    const { status } = await createReview('selfsubjectaccessreviews', {
      spec: { resourceAttributes: { verb, resource } },
    })
    expect(status.allowed).toBe(allowed)
  })

  it("SubjectAccessReview checks the subject in its spec, which is required, not the request's user", async () => {
    const spec = { groups: ['system:masters'], resourceAttributes: { verb: 'delete', resource: 'nodes' } }
    expect((await createReview('subjectaccessreviews', { spec })).status.allowed).toBe(true)
    expect(
      (await createReview('subjectaccessreviews', { spec: { ...spec, groups: ['nobodies'] } })).status.allowed,
    ).toBe(false)
    await expect(createReview('subjectaccessreviews', { spec: { resourceAttributes: {} } })).rejects.toMatchObject({
      code: 422,
    })
  })

  it('SubjectAccessReview requires exactly one of resource and path attributes', async () => {
    const spec = { user: 'ann', resourceAttributes: { verb: 'get' }, nonResourceAttributes: { path: '/' } }
    await expect(createReview('subjectaccessreviews', { spec })).rejects.toMatchObject({ code: 422 })
    await expect(createReview('subjectaccessreviews', { spec: { user: 'ann' } })).rejects.toMatchObject({ code: 422 })
  })

  it('LocalSubjectAccessReview is limited to its namespace', async () => {
    const spec = {
      user: 'ann',
      groups: VIEWER.groups,
      resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'shop' },
    }
    expect((await createReview('localsubjectaccessreviews', { spec }, { namespace: 'shop' })).status.allowed).toBe(true)
    await expect(createReview('localsubjectaccessreviews', { spec }, { namespace: 'other' })).rejects.toMatchObject({
      code: 400,
    })
  })

  it('SelfSubjectRulesReview lists the rules in a namespace, which is required', async () => {
    const master = { name: 'root', groups: ['system:masters', 'system:authenticated'] }
    const { status } = await createReview('selfsubjectrulesreviews', { spec: { namespace: 'shop' } }, { user: master })
    expect(status.resourceRules).toContainEqual({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })
    expect(status.incomplete).toBe(false)
    await expect(createReview('selfsubjectrulesreviews', { spec: {} })).rejects.toMatchObject({
      code: 400,
      message: 'no namespace on request',
    })
  })
})

describe('the API server', () => {
  it('returns a review with 201 and its spec, and does not store it', async () => {
    const { post, get, store } = await createServerFixture()
    const previousRevision = store.revision
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const spec = { resourceAttributes: { verb: 'get', resource: 'pods' } }
    const { status, json } = await post(path, { spec })
    expect([status, json.kind, json.spec, json.status.allowed]).toEqual([201, 'SelfSubjectAccessReview', spec, true])
    expect((await get(path)).status).toBe(405)
    expect(store.revision).toBe(previousRevision)
  })

  it.each([
    ['Table', 406],
    ['PartialObjectMetadata', 406],
  ])(
    'SYS-10 rejects a request for a review as %s, because a review has no columns and no metadata',
    async (form, code) => {
      const { post } = await createServerFixture()
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
      const spec = { resourceAttributes: { verb: 'get', resource: 'pods' } }
      const accept = `application/json;as=${form};v=v1;g=meta.k8s.io`
      expect((await post(path, { spec }, { accept })).json).toMatchObject({
        kind: 'Status',
        code,
        reason: 'NotAcceptable',
      })
      expect((await post(path, { spec }, { accept: `${accept},application/json` })).status).toBe(201)
    },
  )

  it('returns a review in YAML', async () => {
    const { post } = await createServerFixture()
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const { status, text } = await post(path, {}, { accept: 'application/yaml' })
    expect([status, text]).toEqual([201, expect.stringContaining('kind: SelfSubjectReview')])
  })
})
