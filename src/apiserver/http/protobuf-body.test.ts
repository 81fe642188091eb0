// Tests requests with protobuf bodies, as sent by typed clients. protobuf-response.test.ts tests protobuf responses.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { configMap } from '../../api/kinds/config-map/config-map-schema.ts'
import { lease } from '../../api/kinds/lease/lease-schema.ts'
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { deleteOptions, eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { storageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { encodeProtobuf } from '../../api/protobuf/encode.ts'
import { encodeEnvelope, PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { PROTOBUF_SAMPLES } from '../../api/protobuf/samples.fixture.ts'
import type { ObjectType } from '../../api/schema.ts'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'

const encode = (apiVersion: string, kind: string, type: ObjectType, object: object): Buffer =>
  encodeEnvelope({ apiVersion, kind, raw: encodeProtobuf(type, object) })
const HEADERS = { 'content-type': PROTOBUF_MEDIA, accept: 'application/json' }

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const send = (method: string, url: string, body: Uint8Array) => api.call(method, url, body, HEADERS)

describe('a protobuf body', () => {
  it.each(PROTOBUF_SAMPLES)('SYS-2 has the same effect as its JSON form: $command', async ({ kind, bytes, json }) => {
    const url = kind === 'Namespace' ? '/api/v1/namespaces' : `/api/v1/namespaces/shop/${kind.toLowerCase()}s`
    const responses: unknown[] = []
    for (const [body, type] of [
      [bytes, PROTOBUF_MEDIA],
      [JSON.stringify(json), 'application/json'],
    ] as const) {
      api = await createServerFixture() // same clock and randomness, so the responses are identical
      if (kind !== 'Namespace') await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
      const { status, headers, text } = await api.call('POST', `${url}?fieldValidation=Strict`, body, {
        'content-type': type,
        accept: 'application/json',
      })
      responses.push({ status, type: headers['content-type'], text })
    }
    expect(responses[0]).toEqual(responses[1])
    expect(responses[0]).toMatchObject({ status: 201, type: 'application/json' })
  })

  it('preserves an explicit false', async () => {
    const fixedSize = { metadata: { name: 'fast' }, provisioner: 'example.com/p', allowVolumeExpansion: false }
    const body = encode('storage.k8s.io/v1', 'StorageClass', storageClass, fixedSize)
    expect((await send('POST', CLASSES, body)).json).toMatchObject({ allowVolumeExpansion: false })
  })

  it('preserves the microseconds of a lease', async () => {
    const url = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
    const spec = { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' }
    const createResult = await send(
      'POST',
      url,
      encode('coordination.k8s.io/v1', 'Lease', lease, { metadata: { name: 'l' }, spec }),
    )
    expect(createResult).toMatchObject({ status: 201, json: { spec } })
    const { metadata } = createResult.json
    const renewedSpec = { ...spec, holderIdentity: '', renewTime: '2026-01-01T00:00:02.000001Z' }
    const body = encode('coordination.k8s.io/v1', 'Lease', lease, { metadata, spec: renewedSpec })
    expect(await send('PUT', `${url}/l`, body)).toMatchObject({ status: 200, json: { spec: renewedSpec } })
    expect(await send('PUT', `${url}/l`, body)).toMatchObject({ status: 409, json: { reason: 'Conflict' } })
  })

  it('preserves stored fields of a claim that have no protobuf field', async () => {
    const resources = { requests: { storage: '1Gi' } }
    const allocatedResources = { storage: '1Gi' }
    const spec = { accessModes: ['ReadWriteOnce'], resources, allocatedResources }
    const createResult = (await api.post(CLAIMS, { metadata: { name: 'orders' }, spec })).json
    expect(createResult.spec.allocatedResources).toEqual(allocatedResources)
    const labelledClaim = { ...createResult, metadata: { ...createResult.metadata, labels: { seen: 'yes' } } }
    const { status, json } = await send(
      'PUT',
      `${CLAIMS}/orders`,
      encode('v1', 'PersistentVolumeClaim', persistentVolumeClaim, labelledClaim),
    )
    expect(status).toBe(200)
    expect(json.metadata.labels).toEqual({ seen: 'yes' })
    expect(json.spec).toEqual(createResult.spec)
  })

  it('may omit kind and apiVersion', async () => {
    const body = encode('', '', configMap, { metadata: { name: 'a' } })
    expect(await send('POST', CONFIG_MAPS, body)).toMatchObject({ status: 201, json: { kind: 'ConfigMap' } })
  })

  it('may be DeleteOptions of any group', async () => {
    for (const apiVersion of ['v1', 'meta.k8s.io/v1', 'storage.k8s.io/v1', '']) {
      const { metadata } = (await api.post(CONFIG_MAPS, { metadata: { name: 'a' } })).json
      const deleteOptionsBody = (uid: string, dryRun: string[]) =>
        encode(apiVersion, 'DeleteOptions', deleteOptions, { preconditions: { uid }, dryRun })
      expect(await send('DELETE', `${CONFIG_MAPS}/a`, deleteOptionsBody('another', []))).toMatchObject({ status: 409 })
      expect(await send('DELETE', `${CONFIG_MAPS}/a`, deleteOptionsBody(metadata.uid, ['All']))).toMatchObject({
        status: 200,
      })
      expect(await api.get(`${CONFIG_MAPS}/a`)).toMatchObject({ status: 200 })
      expect(await send('DELETE', `${CONFIG_MAPS}/a`, deleteOptionsBody(metadata.uid, []))).toMatchObject({
        status: 200,
      })
      expect(await api.get(`${CONFIG_MAPS}/a`)).toMatchObject({ status: 404 })
    }
  })

  it('binds and evicts a pod', async () => {
    const spec = { containers: [{ name: 'c', image: 'i' }] }
    await api.post(PODS, { metadata: { name: 'web' }, spec })
    const target = { kind: 'Node', name: 'node-a' }
    const bindingBody = encode('v1', 'Binding', binding, { metadata: { name: 'web' }, target })
    expect(await send('POST', `${PODS}/web/binding`, bindingBody)).toMatchObject({ status: 201 })
    expect((await api.get(`${PODS}/web`)).json.spec.nodeName).toBe('node-a')
    const evictionBody = (uid: string) =>
      encode('policy/v1', 'Eviction', eviction, {
        metadata: { name: 'web' },
        deleteOptions: { gracePeriodSeconds: 0, preconditions: { uid } },
      })
    expect(await send('POST', `${PODS}/web/eviction`, evictionBody('another'))).toMatchObject({ status: 409 })
    const { uid } = (await api.get(`${PODS}/web`)).json.metadata
    expect(await send('POST', `${PODS}/web/eviction`, evictionBody(uid))).toMatchObject({ status: 201 })
    expect(await api.get(`${PODS}/web`)).toMatchObject({ status: 404 })
  })

  const secretBytes = PROTOBUF_SAMPLES.find(({ kind }) => kind === 'Secret')!.bytes
  const configMapBytes = encode('v1', 'ConfigMap', configMap, { metadata: { name: 'a' } })
  it.each<[string, string, string, Uint8Array, string]>([
    ['of another kind', 'POST', CONFIG_MAPS, secretBytes, 'Secret in version "v1" cannot be handled as a ConfigMap'],
    [
      'of another version',
      'POST',
      CONFIG_MAPS,
      encode('v2', 'ConfigMap', configMap, { metadata: { name: 'a' } }),
      'the API version in the data (v2) does not match the expected API version (v1)',
    ],
    ['that is empty', 'POST', CONFIG_MAPS, Buffer.alloc(0), 'the request has no body'],
    ['that is JSON', 'POST', CONFIG_MAPS, Buffer.from('{}'), 'does not begin with the magic bytes'],
    ['that is truncated', 'POST', CONFIG_MAPS, configMapBytes.subarray(0, -1), 'the body could not be read'],
    [
      'with trailing bytes',
      'POST',
      CONFIG_MAPS,
      Buffer.concat([configMapBytes, Buffer.from('xy')]),
      'the envelope has the unknown field 15',
    ],
    [
      'with an invalid object',
      'POST',
      CONFIG_MAPS,
      encodeEnvelope({ apiVersion: 'v1', kind: 'ConfigMap', raw: Buffer.from('08', 'hex') }),
      'metadata: field 1',
    ],
    [
      'of a delete that has no DeleteOptions',
      'DELETE',
      `${CONFIG_MAPS}/a`,
      configMapBytes,
      'expected DeleteOptions in the body, got ConfigMap',
    ],
    [
      'of a binding that has another kind',
      'POST',
      `${PODS}/web/binding`,
      configMapBytes,
      'expected Binding in the body, got ConfigMap',
    ],
    [
      'of an eviction that has another kind',
      'POST',
      `${PODS}/web/eviction`,
      configMapBytes,
      'expected Eviction in the body, got ConfigMap',
    ],
  ])('%s is rejected', async (_, method, url, body, message) => {
    const { status, json } = await send(method, url, body)
    expect({ status, reason: json.reason }).toEqual({ status: 400, reason: 'BadRequest' })
    expect(json.message).toContain(message)
  })
})

describe('a body in an unsupported format', () => {
  it.each(['application/cbor', 'application/x-protobuf', 'text/plain'])('%s is rejected with 415', async (type) => {
    const { status, json } = await api.call('POST', CONFIG_MAPS, 'x', { 'content-type': type })
    expect({ status, reason: json.reason }).toEqual({ status: 415, reason: 'UnsupportedMediaType' })
    expect(json.message).toContain(PROTOBUF_MEDIA)
  })

  it.each([PROTOBUF_MEDIA, 'application/apply-patch+cbor'])('%s is rejected with 415 in a patch', async (type) => {
    await api.post(CONFIG_MAPS, { metadata: { name: 'a' } })
    const { status } = await api.call('PATCH', `${CONFIG_MAPS}/a?fieldManager=m`, 'x', { 'content-type': type })
    expect(status).toBe(415)
  })
})
