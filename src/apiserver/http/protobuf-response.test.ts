import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { objectMeta } from '../../api/kinds/shared/meta-schema.ts'
import { decodeProtobuf } from '../../api/protobuf/decode.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { list, type ObjectType, object, opt } from '../../api/schema.ts'
import { listMeta, status as statusType } from '../openapi/envelope-types.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
/** The Accept header of typed Go clients. */
const ACCEPT = { accept: `${PROTOBUF_MEDIA},application/json` }
const partialAccept = (kind: string) => ({
  accept: `${PROTOBUF_MEDIA};as=${kind};g=meta.k8s.io;v=v1,application/json;as=${kind};g=meta.k8s.io;v=v1,application/json`,
})
const configMapType = ALL_KINDS.find(({ plural }) => plural === 'configmaps')!.type
const partialType = object('Partial', '', { metadata: opt(1, objectMeta, '') })
const listOf = (item: ObjectType) =>
  object('List', '', { metadata: opt(1, listMeta, ''), items: opt(2, list(item), '') })

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
  await api.post(MAPS, { metadata: { name: 'a', labels: { app: 'x' } }, data: { k: 'v' } })
})
afterEach(() => api.store.close())

function decodeResponse(response: { bytes: Uint8Array; headers: Json }, type: ObjectType): Json {
  expect(response.headers['content-type']).toBe(PROTOBUF_MEDIA)
  const { apiVersion, kind, raw } = decodeEnvelope(response.bytes)
  return { kind, apiVersion, ...decodeProtobuf(type, raw) }
}

describe('protobuf responses', () => {
  it('contain the same object as JSON', async () => {
    const { json } = await api.get(`${MAPS}/a`)
    expect(decodeResponse(await api.get(`${MAPS}/a`, ACCEPT), configMapType)).toEqual(json)
    const createResponse = await api.post(MAPS, { metadata: { name: 'b' } }, ACCEPT)
    expect([createResponse.status, decodeResponse(createResponse, configMapType).metadata.name]).toEqual([201, 'b'])
  })

  it('contain the same list as JSON, for every kind', async () => {
    await api.post(CLASSES, { metadata: { name: 'fast' }, provisioner: 'example.com/p', allowVolumeExpansion: false })
    for (const { kind, apiVersion, plural } of api.server.resources.all) {
      if (kind.isReview) continue
      const path = `${apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`}/${plural}`
      const { items, ...head } = (await api.get(path)).json
      const decodedList = decodeResponse(await api.get(path, ACCEPT), listOf(kind.type))
      expect({ items: [], ...decodedList }, path).toMatchObject({ ...head, items })
    }
  })

  it('contain the metadata of an object and of a list', async () => {
    const { metadata } = (await api.get(`${MAPS}/a`)).json
    const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
    expect(decodeResponse(await api.get(`${MAPS}/a`, partialAccept('PartialObjectMetadata')), partialType)).toEqual(
      partial,
    )
    const decodedList = decodeResponse(
      await api.get(MAPS, partialAccept('PartialObjectMetadataList')),
      listOf(partialType),
    )
    expect(decodedList).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: String(api.store.revision) },
      items: [{ metadata }],
    })
  })

  it('contain the Status of a failure and of a success', async () => {
    const failure = await api.get(`${MAPS}/absent`, ACCEPT)
    const { metadata: _, ...expected } = (await api.get(`${MAPS}/absent`)).json // an empty message is read as absent
    expect([failure.status, decodeResponse(failure, statusType)]).toEqual([404, expected])
    await api.post(CLASSES, { metadata: { name: 'x' }, provisioner: 'example.com/p' })
    const deleteResponse = await api.call('DELETE', `${MAPS}/a`, undefined, ACCEPT)
    expect(decodeResponse(deleteResponse, statusType)).toMatchObject({
      kind: 'Status',
      status: 'Success',
      details: { name: 'a' },
    })
  })

  it('contain a review', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const { type } = ALL_KINDS.find(({ plural }) => plural === 'selfsubjectreviews')!
    const response = await api.post(path, {}, ACCEPT)
    expect(decodeResponse(response, type)).toMatchObject({
      kind: 'SelfSubjectReview',
      status: { userInfo: { username: 'tester' } },
    })
  })

  it('are JSON for tables, which have no protobuf message', async () => {
    const table = 'as=Table;v=v1;g=meta.k8s.io'
    const accept = `${PROTOBUF_MEDIA};${table},application/json;${table}`
    expect((await api.get(MAPS, { accept })).json.kind).toBe('Table')
    expect((await api.get(MAPS, { accept: `${PROTOBUF_MEDIA};${table}` })).status).toBe(406)
  })
})

describe('protobuf watches', () => {
  const INITIAL = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const decodeEvents = (events: readonly { type: string; object: Json }[], type: ObjectType) =>
    events.map((event) => {
      const { kind, apiVersion, raw } = event.object
      return { type: event.type, object: { kind, apiVersion, ...decodeProtobuf(type, raw) } as Json }
    })

  it('send objects, the bookmark after the initial state, changes and deletions', async () => {
    const watches = [
      await api.watch(`${MAPS}?${INITIAL}`, ACCEPT),
      await api.watch(`${MAPS}?${INITIAL}&labelSelector=app`, ACCEPT),
    ]
    for (const watch of watches) await watch.waitUntil((events) => events.length === 2)
    await api.patch(`${MAPS}/a`, { data: { k: 'w' } })
    await api.delete(`${MAPS}/a`)
    for (const watch of watches) {
      await watch.waitUntil((events) => events.length === 4)
      expect(decodeEvents(watch.events, configMapType)).toMatchObject([
        { type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1', data: { k: 'v' } } },
        {
          type: 'BOOKMARK',
          object: { kind: 'ConfigMap', metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
        },
        { type: 'MODIFIED', object: { metadata: { name: 'a' }, data: { k: 'w' } } },
        { type: 'DELETED', object: { metadata: { resourceVersion: String(api.store.revision) } } },
      ])
      watch.close()
    }
  })

  it('send metadata only', async () => {
    const watch = await api.watch(`${MAPS}?${INITIAL}`, partialAccept('PartialObjectMetadata'))
    await watch.waitUntil((events) => events.length === 2)
    expect(decodeEvents(watch.events, partialType)).toMatchObject([
      {
        type: 'ADDED',
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' } },
      },
      {
        type: 'BOOKMARK',
        object: { kind: 'PartialObjectMetadata', metadata: { resourceVersion: String(api.store.revision) } },
      },
    ])
    watch.close()
  })

  it('send the same event as a JSON watch that is open at the same time', async () => {
    const query = `watch=1&resourceVersion=${api.store.revision}`
    const [json, protobuf] = [await api.watch(`${MAPS}?${query}`), await api.watch(`${MAPS}?${query}`, ACCEPT)]
    await api.post(MAPS, { metadata: { name: 'b' }, data: { k: 'v' } })
    for (const watch of [json, protobuf]) await watch.waitUntil((events) => events.length === 1)
    expect(decodeEvents(protobuf!.events, configMapType)).toEqual(json!.events)
    for (const watch of [json, protobuf]) watch!.close()
  })
})
