import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { decodeProtobuf } from '../../api/protobuf/decode.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { parseYaml } from '../../api/yaml-body.ts'
import type { Entry } from '../../store/index.ts'
import { decodeStored, encodeStored } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { encodeList } from './list-body.ts'
import type { LongBody } from './messages.ts'
import { negotiate } from './negotiate.ts'
import { listTypeOf } from './protobuf-response.ts'
import { wholeBody } from './whole-body.fixture.ts'

const KIBIBYTE = 1024
const META = { resourceVersion: '5000' }
const FORMS = ['table', 'partialList'] as const

let api: ServerFixture
let maps: Resource
beforeEach(async () => {
  api = await createServerFixture()
  maps = api.server.resources.find('', 'v1', 'configmaps')!
})
afterEach(() => api.store.close())

const entriesOf = (count: number, dataBytes: number) =>
  Array.from({ length: count }, (_, index) => {
    const metadata = { name: `map-${index}`, namespace: 'default', creationTimestamp: '2026-01-31T12:00:00Z' }
    const value = encodeStored({ metadata, data: { text: 'x'.repeat(dataBytes) } } as Json)
    return { key: `core/configmaps/default/map-${index}`, value, modRevision: index + 1, createRevision: index + 1 }
  })

const encode = (accept: string, entries: ReturnType<typeof entriesOf>) =>
  encodeList(api.server.objects, { resource: maps, entries, meta: META }, negotiate(accept, FORMS), 'Metadata')

async function encodeLong(accept: string, count = 400, dataBytes = KIBIBYTE): Promise<LongBody> {
  const body = await encode(accept, entriesOf(count, dataBytes))
  if (!('next' in body)) throw new Error('the body is complete')
  return body
}

const textOf = (longBody: LongBody) => Buffer.from(wholeBody({ status: 200, headers: {}, longBody })).toString('utf8')
const itemsOf = (count: number, dataBytes: number) => entriesOf(count, dataBytes).map(decodeStored)

describe('the body of a long list', () => {
  it('SYS-19 contains all items as JSON and states its length', async () => {
    const body = await encodeLong('application/json')
    const text = textOf(body)
    expect(JSON.parse(text)).toEqual({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: META,
      items: itemsOf(400, KIBIBYTE),
    })
    expect(body.byteLength).toBe(text.length)
  })

  it('SYS-19 contains all items as YAML with sorted keys', async () => {
    const text = textOf(await encodeLong('application/yaml'))
    expect((await parseYaml(text)).value).toEqual({
      apiVersion: 'v1',
      items: itemsOf(400, KIBIBYTE),
      kind: 'ConfigMapList',
      metadata: META,
    })
    expect(text.slice(0, 100)).toMatch(/^apiVersion: v1\nitems:\n- data:\n {4}text: x/)
  })

  it('SYS-19 contains all items as protobuf and states its length', async () => {
    const body = await encodeLong(PROTOBUF_MEDIA)
    const bytes = Buffer.concat([wholeBody({ status: 200, headers: {}, longBody: body })])
    expect(bytes).toHaveLength(body.byteLength!)
    const { kind, raw } = decodeEnvelope(bytes)
    expect(kind).toBe('ConfigMapList')
    const type = ALL_KINDS.find(({ plural }) => plural === 'configmaps')!.type
    expect(decodeProtobuf(listTypeOf(type), raw)).toMatchObject({ metadata: META, items: itemsOf(400, KIBIBYTE) })
  })

  it('SYS-19 contains one row per object as a Table, and the metadata of all objects as a PartialObjectMetadataList', async () => {
    const table = JSON.parse(textOf(await encodeLong('application/json;as=Table;v=v1;g=meta.k8s.io')))
    expect(table).toMatchObject({ kind: 'Table', metadata: META })
    expect(table.rows.map(({ cells }: Json) => cells[0])).toEqual(entriesOf(400, 0).map((_, index) => `map-${index}`))
    const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
    const list = JSON.parse(textOf(await encodeLong(accept)))
    expect(list.items.map(({ metadata }: Json) => metadata.name)).toEqual(table.rows.map(({ cells }: Json) => cells[0]))
  })

  it.each([
    ['application/json', 130],
    ['application/yaml', 10],
    ['application/json;as=Table;v=v1;g=meta.k8s.io', 130],
  ])('SYS-19 is encoded in slices as %s', async (accept, entriesMax) => {
    let decodedCount = 0
    const { objects, clock } = api.server.objects
    const decode = (entry: Entry) => {
      decodedCount++
      return objects.decode(entry)
    }
    const countingDeps = { clock, objects: { decode, decodeOnce: decode } }
    const list = { resource: maps, entries: entriesOf(400, KIBIBYTE), meta: META }
    const body = (await encodeList(countingDeps, list, negotiate(accept, FORMS), 'None')) as LongBody
    let sliceCount = 0
    for (let slice = body.next(); slice; slice = body.next()) {
      sliceCount++
      expect(decodedCount).toBeLessThanOrEqual(sliceCount * entriesMax)
      expect(slice.length).toBeLessThan(160 * KIBIBYTE)
    }
    expect(sliceCount).toBeGreaterThan(2)
  })

  it('marks the default class in a long table', async () => {
    const classes = api.server.resources.find('storage.k8s.io', 'v1', 'storageclasses')!
    const entries = Array.from({ length: 300 }, (_, index) => {
      const annotations = index === 299 ? { 'storageclass.kubernetes.io/is-default-class': 'true' } : {}
      const metadata = { name: `class-${index}`, annotations, creationTimestamp: '2026-01-31T12:00:00Z' }
      const value = encodeStored({ metadata, provisioner: 'p', parameters: { x: 'x'.repeat(KIBIBYTE) } } as Json)
      return { key: `classes/${index}`, value, modRevision: index + 1, createRevision: index + 1 }
    })
    const acceptedForm = negotiate('application/json;as=Table;v=v1;g=meta.k8s.io', FORMS)
    const list = { resource: classes, entries, meta: META }
    const body = (await encodeList(api.server.objects, list, acceptedForm, 'None')) as LongBody
    const { rows } = JSON.parse(textOf(body))
    expect(rows.filter(({ cells }: Json) => cells[0].includes('(default)'))).toHaveLength(1)
  })
})

describe('the body of a short or empty list', () => {
  it('is complete', async () => {
    const emptyBody = (await encode('application/yaml', [])) as Buffer
    expect(emptyBody.toString()).toBe(
      'apiVersion: v1\nitems: []\nkind: ConfigMapList\nmetadata:\n  resourceVersion: "5000"\n',
    )
    const shortBody = (await encode('application/json', entriesOf(2, 10))) as Buffer
    expect(JSON.parse(shortBody.toString()).items).toHaveLength(2)
  })
})
