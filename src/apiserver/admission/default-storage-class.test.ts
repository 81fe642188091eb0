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

const aClass = (name: string, annotations: Record<string, string> = {}) =>
  api.post(CLASSES, { metadata: { name, annotations }, provisioner: 'd.example.com' })

async function classOfNewClaim({ spec = {}, annotations = {} }: { spec?: object; annotations?: object } = {}) {
  const { status, json } = await api.post(CLAIMS, {
    metadata: { generateName: 'c-', annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  })
  expect(status).toBe(201)
  return json.spec.storageClassName
}

describe('the default class at admission', () => {
  it('PROV-3 a claim that names no class gets the default one', async () => {
    await aClass('plain')
    await aClass('usual', { [IS_DEFAULT]: 'true' })
    expect(await classOfNewClaim()).toBe('usual')
  })

  it('PROV-3 the beta annotation marks a default class as well', async () => {
    await aClass('usual', { 'storageclass.beta.kubernetes.io/is-default-class': 'true' })
    expect(await classOfNewClaim()).toBe('usual')
  })

  it('PROV-3 without a default class a claim is left as it is', async () => {
    await aClass('plain')
    await aClass('no', { [IS_DEFAULT]: 'false' })
    await aClass('empty', { [IS_DEFAULT]: '' })
    expect(await classOfNewClaim()).toBeUndefined()
  })

  it('PROV-3 a claim that names a class keeps it, by field, by "" and by either annotation', async () => {
    await aClass('usual', { [IS_DEFAULT]: 'true' })
    expect(await classOfNewClaim({ spec: { storageClassName: 'other' } })).toBe('other')
    expect(await classOfNewClaim({ spec: { storageClassName: '' } })).toBe('')
    for (const word of ['beta', 'alpha']) {
      const annotations = { [`volume.${word}.kubernetes.io/storage-class`]: 'old' }
      expect(await classOfNewClaim({ annotations })).toBeUndefined()
    }
  })

  it('PROV-3 of several default classes the newest wins, of equally new ones the first by name', async () => {
    await aClass('b', { [IS_DEFAULT]: 'true' })
    await aClass('a', { [IS_DEFAULT]: 'true' })
    expect(await classOfNewClaim()).toBe('a')
    await api.clock.advance(2_000)
    await aClass('c', { [IS_DEFAULT]: 'true' })
    expect(await classOfNewClaim()).toBe('c')
    await api.delete(`${CLASSES}/c`)
    expect(await classOfNewClaim()).toBe('a')
  })

  it('PROV-3 a class that comes in the same breath as a claim counts if it came first', async () => {
    const [, name] = await Promise.all([aClass('usual', { [IS_DEFAULT]: 'true' }), classOfNewClaim()])
    expect(name).toBe('usual')
  })

  it('PROV-3 other kinds and updates are left alone', async () => {
    const { json } = await api.post(CLAIMS, {
      metadata: { name: 'early' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await aClass('usual', { [IS_DEFAULT]: 'true' })
    const updated = await api.put(`${CLAIMS}/early`, { ...json, metadata: { ...json.metadata, labels: { a: 'b' } } })
    expect(updated.status).toBe(200)
    expect(updated.json.spec.storageClassName).toBeUndefined()
  })
})
