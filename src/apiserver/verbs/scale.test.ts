import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const SETS = '/apis/apps/v1/namespaces/default/statefulsets'
const SCALE = `${SETS}/web/scale`

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
  const { status } = await api.post(SETS, {
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  })
  expect(status).toBe(201)
})
afterEach(() => api.store.close())

const getSet = async () => (await api.get(`${SETS}/web`)).json

describe('statefulsets/scale', () => {
  it('is a Scale with the number of replicas and the selector', async () => {
    const { status, json } = await api.get(SCALE)
    expect(status).toBe(200)
    expect(json).toMatchObject({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'web', namespace: 'default', resourceVersion: (await getSet()).metadata.resourceVersion },
      spec: { replicas: 2 },
      status: { replicas: 0, selector: 'app=web' },
    })
  })

  it('changes only the replicas with PUT, if the resourceVersion is current', async () => {
    const scale = (await api.get(SCALE)).json
    const before = await getSet()
    const { status, json } = await api.put(SCALE, { ...scale, spec: { replicas: 5 } })
    expect([status, json.kind, json.spec]).toEqual([200, 'Scale', { replicas: 5 }])
    const after = await getSet()
    expect(after.spec).toEqual({ ...before.spec, replicas: 5 })
    expect(after.metadata.generation).toBe(2)
    expect((await api.put(SCALE, { ...scale, spec: { replicas: 6 } })).status).toBe(409)
  })

  it.each([
    ['merge', { spec: { replicas: 4 } }],
    ['strategic-merge', { spec: { replicas: 4 } }],
    ['json', [{ op: 'replace', path: '/spec/replicas', value: 4 }]],
  ] as const)('can be changed with a patch of type %s', async (type, patch) => {
    const { status, json } = await api.patch(SCALE, patch, type)
    expect([status, json.kind, json.spec]).toEqual([200, 'Scale', { replicas: 4 }])
    expect((await getSet()).spec.replicas).toBe(4)
  })

  it('records its field manager', async () => {
    await api.patch(`${SCALE}?fieldManager=scaler`, { spec: { replicas: 3 } }, 'merge')
    const entry = (await getSet()).metadata.managedFields.find(({ manager }: any) => manager === 'scaler')
    expect(entry).toMatchObject({ subresource: 'scale', fieldsV1: { 'f:spec': { 'f:replicas': {} } } })
  })

  it.each<[string, number, () => Promise<{ status: number }>]>([
    ['a negative number', 422, () => api.patch(SCALE, { spec: { replicas: -1 } }, 'merge')],
    ['an unknown field', 422, () => api.patch(`${SCALE}?fieldValidation=Strict`, { spec: { size: 1 } }, 'merge')],
    ['another kind', 400, () => api.put(SCALE, { kind: 'Pod', metadata: { name: 'web' } })],
    ['another name', 400, () => api.put(SCALE, { metadata: { name: 'other' }, spec: { replicas: 1 } })],
    [
      'a server-side apply',
      415,
      () => api.call('PATCH', `${SCALE}?fieldManager=m`, '{}', { 'content-type': 'application/apply-patch+yaml' }),
    ],
    ['a set that does not exist', 404, () => api.patch(`${SETS}/none/scale`, { spec: { replicas: 1 } }, 'merge')],
    ['POST', 405, () => api.post(SCALE, {})],
    ['a kind without a scale', 404, () => api.get('/api/v1/namespaces/default/pods/p/scale')],
  ])('SYS-10 rejects %s and changes nothing', async (_case, code, send) => {
    expect((await send()).status).toBe(code)
    expect((await getSet()).spec.replicas).toBe(2)
  })
})
