import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { verbsOf } from '../discovery/index.ts'
import { createResources, parseRuntimeConfig } from '../resources.ts'
import type { Json } from '../server.fixture.ts'
import { createOpenApi, type OpenApi } from './index.ts'

const KINDS = [
  podKind,
  namespaceKind,
  nodeKind,
  persistentVolumeClaimKind,
  persistentVolumeKind,
  configMapKind,
  eventKind,
  storageClassKind,
  leaseKind,
]
const openApi = createOpenApi(createResources(KINDS))
const NO_QUERY = new URLSearchParams()

const ask = (url: string, headers: Record<string, string> = {}, from: OpenApi = openApi) => {
  const [path = '', query] = url.split('?')
  return from.handle(path, new URLSearchParams(query), headers)
}
const read = (url: string, headers?: Record<string, string>): Json => JSON.parse(ask(url, headers)!.body.toString())

/** Every value of a property, anywhere in a document. */
function* everyValue(document: Json, property: string): Generator<Json> {
  if (typeof document !== 'object' || document === null) return
  for (const [name, value] of Object.entries(document)) {
    if (name === property && typeof value === 'string') yield value
    yield* everyValue(value, property)
  }
}

describe('the index of OpenAPI 3', () => {
  it('SYS-2 lists every group version with a URL that contains the hash of its document', () => {
    const { paths } = read('/openapi/v3', { accept: 'application/json, */*' })
    expect(Object.keys(paths)).toEqual([
      'api/v1',
      'apis/storage.k8s.io/v1',
      'apis/storage.k8s.io/v1beta1',
      'apis/coordination.k8s.io/v1',
    ])
    expect(paths['api/v1'].serverRelativeURL).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/)
  })

  it('SYS-15 does not list disabled versions', () => {
    const off = createOpenApi(createResources(KINDS, parseRuntimeConfig('storage.k8s.io/v1beta1=false', KINDS)))
    expect(ask('/openapi/v3', {}, off)!.body.toString()).not.toContain('v1beta1')
    expect(ask('/openapi/v3/apis/storage.k8s.io/v1beta1', {}, off)).toBeUndefined()
    expect(ask('/openapi/v2', {}, off)!.body.toString()).not.toContain('/v1beta1/')
  })
})

describe('a group version’s document', () => {
  const url = () => read('/openapi/v3').paths['apis/storage.k8s.io/v1'].serverRelativeURL

  it('is cacheable forever if requested with its hash', () => {
    const answer = ask(url(), { accept: 'application/json' })!
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, immutable, max-age=31536000',
      vary: 'Accept',
    })
    expect(url()).toContain(answer.headers.etag!.replaceAll('"', ''))
  })

  it('is not cacheable forever if requested without a hash', () => {
    expect(ask('/openapi/v3/apis/storage.k8s.io/v1')!.headers['cache-control']).toBe('public')
  })

  it('redirects from an old hash', () => {
    const answer = ask('/openapi/v3/apis/storage.k8s.io/v1?hash=OLD')!
    expect(answer.status).toBe(301)
    expect(answer.headers.location).toBe(url())
  })

  it('returns 304 to a client that has it', () => {
    const { etag } = ask(url())!.headers
    expect(ask(url(), { 'if-none-match': etag! })).toMatchObject({ status: 304, body: Buffer.alloc(0) })
  })

  it('is available as JSON only', () => {
    const accept = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf'
    expect(() => ask(url(), { accept })).toThrow(expect.objectContaining({ code: 406 }))
  })

  it('does not exist for a group version that is not served', () => {
    for (const path of ['/openapi/v3/apis/apps/v1', '/openapi/v3/api', '/openapi', '/openapi/v1', '/']) {
      expect(openApi.handle(path, NO_QUERY, {}), path).toBeUndefined()
    }
  })
})

describe('all documents', () => {
  const resources = createResources(ALL_KINDS)
  const everything = createOpenApi(resources)
  const index = JSON.parse(ask('/openapi/v3', {}, everything)!.body.toString())

  for (const name of Object.keys(index.paths)) {
    const document = JSON.parse(ask(`/openapi/v3/${name}`, {}, everything)!.body.toString())

    it(`has no dangling references (${name})`, () => {
      const names = new Set(Object.keys(document.components.schemas))
      const refs = [...everyValue(document, '$ref')]
      expect(refs.length).toBeGreaterThan(0)
      expect(refs.filter((ref) => !names.has(ref.replace('#/components/schemas/', '')))).toEqual([])
    })

    it(`gives every operation a unique id (${name})`, () => {
      const ids = [...everyValue(document.paths, 'operationId')]
      expect(ids.length).toBeGreaterThan(0)
      expect(new Set(ids).size).toBe(ids.length)
    })

    it(`SYS-2 has a schema and a PATCH for each kind, as kubectl explain and apply need (${name})`, () => {
      for (const { group, version, apiVersion, kind } of resources.all) {
        if (name !== (group ? `apis/${apiVersion}` : `api/${apiVersion}`)) continue
        const gvk = { group, version, kind: kind.kind }
        const ofKind = (value: Json) => isDeepStrictEqual(value['x-kubernetes-group-version-kind'], gvk)
        const patched = Object.values<Json>(document.paths).some(({ patch }) => patch && ofKind(patch))
        expect(patched, kind.kind).toBe(verbsOf(kind).includes('patch'))
        const schemas = Object.values<Json>(document.components.schemas)
        const known = schemas.filter((schema) => isDeepStrictEqual(schema['x-kubernetes-group-version-kind'], [gvk]))
        expect(known, kind.kind).toHaveLength(1)
        expect(Object.keys(known[0].properties)).toEqual(expect.arrayContaining(['apiVersion', 'kind', 'metadata']))
      }
    })
  }
})

describe('operations', () => {
  const { paths } = read('/openapi/v3/api/v1')
  const methods = (path: string) => Object.keys(paths[path]).filter((name) => name !== 'parameters')

  it('SYS-2 cover collections, objects and subresources', () => {
    const base = '/api/v1/namespaces/{namespace}/pods'
    expect(methods('/api/v1/pods')).toEqual(['get'])
    expect(methods(base)).toEqual(['get', 'post', 'delete'])
    expect(methods(`${base}/{name}`)).toEqual(['get', 'put', 'patch', 'delete'])
    expect(methods(`${base}/{name}/status`)).toEqual(['get', 'put', 'patch'])
    expect(methods(`${base}/{name}/binding`)).toEqual(['post'])
    expect(methods('/api/v1/namespaces/{name}/finalize')).toEqual(['put'])
    expect(methods('/api/v1/namespaces')).toEqual(['get', 'post'])
  })

  it('SYS-2 have fieldValidation on every PATCH, which kubectl checks for', () => {
    const patches = Object.values<Json>(paths).flatMap(({ patch }) => (patch ? [patch] : []))
    expect(patches.length).toBeGreaterThan(KINDS.length / 2)
    for (const patch of patches) {
      const query = patch.parameters.map(({ name }: Json) => name)
      expect(query, patch.operationId).toEqual(['dryRun', 'fieldManager', 'fieldValidation', 'force'])
      expect(patch['x-kubernetes-action']).toBe('patch')
    }
    expect(paths['/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}'].patch).toMatchObject({
      operationId: 'patchCoreV1NamespacedPersistentVolumeClaim',
      'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: 'PersistentVolumeClaim' },
      requestBody: {
        required: true,
        content: {
          'application/apply-patch+yaml': {},
          'application/json-patch+json': {},
          'application/merge-patch+json': {},
          'application/strategic-merge-patch+json': {},
        },
      },
    })
  })

  it('name the kind of the body if it is not the object itself', () => {
    const { post } = paths['/api/v1/namespaces/{namespace}/pods/{name}/eviction']
    expect(post['x-kubernetes-group-version-kind']).toEqual({ group: 'policy', version: 'v1', kind: 'Eviction' })
    expect(post.requestBody.content['*/*'].schema.$ref).toBe('#/components/schemas/io.k8s.api.policy.v1.Eviction')
  })

  it('return the object or a Status for a delete, depending on the kind', () => {
    const answered = (path: string) => paths[path].delete.responses[200].content['application/json'].schema.$ref
    expect(answered('/api/v1/namespaces/{namespace}/pods/{name}')).toMatch(/v1\.Pod$/)
    expect(answered('/api/v1/namespaces/{namespace}/configmaps/{name}')).toMatch(/v1\.Status$/)
  })
})

describe('Swagger 2', () => {
  it('is one document for all group versions', () => {
    const document = read('/openapi/v2', { accept: 'application/json' })
    expect(document.swagger).toBe('2.0')
    expect(Object.keys(document.paths)).toContain('/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}')
    expect(Object.keys(document.definitions)).toContain('io.k8s.api.storage.v1beta1.StorageClass')
  })

  it('has no dangling references', () => {
    const document = read('/openapi/v2')
    const names = new Set(Object.keys(document.definitions))
    const missing = [...everyValue(document, '$ref')].filter((ref) => !names.has(ref.replace('#/definitions/', '')))
    expect(missing).toEqual([])
  })

  it('never has a type beside a reference, which clients reject', () => {
    const schemas = Object.values<Json>(read('/openapi/v2').definitions).flatMap(({ properties = {} }) =>
      Object.values<Json>(properties),
    )
    expect(schemas.filter((schema) => schema.$ref && (schema.type || schema.properties))).toEqual([])
  })

  it('SYS-2 is available in binary form under a valid media type, for both requested names', () => {
    const answered = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
    const byOldName = ask('/openapi/v2', { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' })!
    const byNewName = ask('/openapi/v2', { accept: answered })!
    const byOldPath = ask('/swagger-2.0.0.pb-v1', {})!
    for (const answer of [byOldName, byNewName, byOldPath]) {
      expect(answer.headers['content-type']).toBe(answered)
      expect(answer.body.equals(byOldName.body)).toBe(true)
    }
    expect(ask('/openapi/v2', { accept: answered, 'if-none-match': byOldName.headers.etag! })!.status).toBe(304)
  })

  it('rejects other media types', () => {
    expect(() => ask('/openapi/v2', { accept: 'text/html' })).toThrow(expect.objectContaining({ code: 406 }))
  })
})
