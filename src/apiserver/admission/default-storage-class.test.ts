import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const createClass = (name: string, annotations: Record<string, string> = {}) =>
  api.post(CLASSES, { metadata: { name, annotations }, provisioner: 'd.example.com' })

async function createClaimAndGetClass({ spec = {}, annotations = {} }: { spec?: object; annotations?: object } = {}) {
  const { status, json } = await api.post(CLAIMS, {
    metadata: { generateName: 'c-', annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  })
  expect(status).toBe(201)
  return json.spec.storageClassName
}

describe('the DefaultStorageClass admission plugin', () => {
  it('PROV-3 sets the default class on a claim without one', async () => {
    await createClass('plain')
    await createClass('usual', { [IS_DEFAULT]: 'true' })
    expect(await createClaimAndGetClass()).toBe('usual')
  })

  it('PROV-3 recognises a default class by the beta annotation', async () => {
    await createClass('usual', { 'storageclass.beta.kubernetes.io/is-default-class': 'true' })
    expect(await createClaimAndGetClass()).toBe('usual')
  })

  it('PROV-3 does not change a claim if there is no default class', async () => {
    await createClass('plain')
    await createClass('no', { [IS_DEFAULT]: 'false' })
    await createClass('empty', { [IS_DEFAULT]: '' })
    expect(await createClaimAndGetClass()).toBeUndefined()
  })

  it('PROV-3 keeps the class that a claim sets by field, by "" or by either annotation', async () => {
    await createClass('usual', { [IS_DEFAULT]: 'true' })
    expect(await createClaimAndGetClass({ spec: { storageClassName: 'other' } })).toBe('other')
    expect(await createClaimAndGetClass({ spec: { storageClassName: '' } })).toBe('')
    for (const stage of ['beta', 'alpha']) {
      const annotations = { [`volume.${stage}.kubernetes.io/storage-class`]: 'old' }
      expect(await createClaimAndGetClass({ annotations })).toBeUndefined()
    }
  })

  it('PROV-3 chooses the newest of several default classes, then the first by name', async () => {
    await createClass('b', { [IS_DEFAULT]: 'true' })
    await createClass('a', { [IS_DEFAULT]: 'true' })
    expect(await createClaimAndGetClass()).toBe('a')
    await api.clock.advance(2_000)
    await createClass('c', { [IS_DEFAULT]: 'true' })
    expect(await createClaimAndGetClass()).toBe('c')
    await api.delete(`${CLASSES}/c`)
    expect(await createClaimAndGetClass()).toBe('a')
  })

  it('PROV-3 uses a class that is created immediately before the claim', async () => {
    const [, name] = await Promise.all([createClass('usual', { [IS_DEFAULT]: 'true' }), createClaimAndGetClass()])
    expect(name).toBe('usual')
  })

  it('PROV-3 does not set a class on update', async () => {
    const { json } = await api.post(CLAIMS, {
      metadata: { name: 'early' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await createClass('usual', { [IS_DEFAULT]: 'true' })
    const updateResponse = await api.put(`${CLAIMS}/early`, {
      ...json,
      metadata: { ...json.metadata, labels: { a: 'b' } },
    })
    expect(updateResponse.status).toBe(200)
    expect(updateResponse.json.spec.storageClassName).toBeUndefined()
  })
})
