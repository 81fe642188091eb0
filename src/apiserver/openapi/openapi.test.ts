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

const request = (documentUrl: string, headers: Record<string, string> = {}, source: OpenApi = openApi) => {
  const [path = '', query] = documentUrl.split('?')
  return source.handle(path, new URLSearchParams(query), headers)
}
const readJson = (documentUrl: string, headers?: Record<string, string>): Json =>
  JSON.parse(request(documentUrl, headers)!.body.toString())

/** Yields all string values of a property at any depth of a document. */
function* stringValues(document: Json, property: string): Generator<Json> {
  if (typeof document !== 'object' || document === null) return
  for (const [name, value] of Object.entries(document)) {
    if (name === property && typeof value === 'string') yield value
    yield* stringValues(value, property)
  }
}

describe('the index of OpenAPI 3', () => {
  it('SYS-2 lists every group version with a URL that contains the hash of its document', () => {
    const { paths } = readJson('/openapi/v3', { accept: 'application/json, */*' })
    expect(Object.keys(paths)).toEqual([
      'api/v1',
      'apis/storage.k8s.io/v1',
      'apis/storage.k8s.io/v1beta1',
      'apis/coordination.k8s.io/v1',
    ])
    expect(paths['api/v1'].serverRelativeURL).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/)
  })

  it('SYS-15 does not list disabled versions', () => {
    const limitedOpenApi = createOpenApi(
      createResources(KINDS, parseRuntimeConfig('storage.k8s.io/v1beta1=false', KINDS)),
    )
    expect(request('/openapi/v3', {}, limitedOpenApi)!.body.toString()).not.toContain('v1beta1')
    expect(request('/openapi/v3/apis/storage.k8s.io/v1beta1', {}, limitedOpenApi)).toBeUndefined()
    expect(request('/openapi/v2', {}, limitedOpenApi)!.body.toString()).not.toContain('/v1beta1/')
  })
})

describe('the document of a group version', () => {
  const documentUrl = () => readJson('/openapi/v3').paths['apis/storage.k8s.io/v1'].serverRelativeURL

  it('is cacheable forever if requested with its hash', () => {
    const response = request(documentUrl(), { accept: 'application/json' })!
    expect(response.status).toBe(200)
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, immutable, max-age=31536000',
      vary: 'Accept',
    })
    expect(documentUrl()).toContain(response.headers.etag!.replaceAll('"', ''))
  })

  it('is not cacheable forever if requested without a hash', () => {
    expect(request('/openapi/v3/apis/storage.k8s.io/v1')!.headers['cache-control']).toBe('public')
  })

  it('redirects a request with an outdated hash to the current URL', () => {
    const response = request('/openapi/v3/apis/storage.k8s.io/v1?hash=OLD')!
    expect(response.status).toBe(301)
    expect(response.headers.location).toBe(documentUrl())
  })

  it('returns 304 if the ETag matches', () => {
    const { etag } = request(documentUrl())!.headers
    expect(request(documentUrl(), { 'if-none-match': etag! })).toMatchObject({ status: 304, body: Buffer.alloc(0) })
  })

  it('is available as JSON only', () => {
    const accept = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf'
    expect(() => request(documentUrl(), { accept })).toThrow(expect.objectContaining({ code: 406 }))
  })

  it('does not exist for a group version that is not served', () => {
    for (const path of ['/openapi/v3/apis/apps/v1', '/openapi/v3/api', '/openapi', '/openapi/v1', '/']) {
      expect(openApi.handle(path, NO_QUERY, {}), path).toBeUndefined()
    }
  })
})

describe('each OpenAPI 3 document', () => {
  const resources = createResources(ALL_KINDS)
  const allOpenApi = createOpenApi(resources)
  const index = JSON.parse(request('/openapi/v3', {}, allOpenApi)!.body.toString())

  for (const name of Object.keys(index.paths)) {
    const document = JSON.parse(request(`/openapi/v3/${name}`, {}, allOpenApi)!.body.toString())

    it(`has no dangling references (${name})`, () => {
      const names = new Set(Object.keys(document.components.schemas))
      const refs = [...stringValues(document, '$ref')]
      expect(refs.length).toBeGreaterThan(0)
      expect(refs.filter((ref) => !names.has(ref.replace('#/components/schemas/', '')))).toEqual([])
    })

    it(`has a unique ID for every operation (${name})`, () => {
      const ids = [...stringValues(document.paths, 'operationId')]
      expect(ids.length).toBeGreaterThan(0)
      expect(new Set(ids).size).toBe(ids.length)
    })

    it(`SYS-2 has the schema and PATCH of each kind that kubectl explain and apply require (${name})`, () => {
      for (const { group, version, apiVersion, kind } of resources.all) {
        if (name !== (group ? `apis/${apiVersion}` : `api/${apiVersion}`)) continue
        const gvk = { group, version, kind: kind.kind }
        const isOfKind = (value: Json) => isDeepStrictEqual(value['x-kubernetes-group-version-kind'], gvk)
        const hasPatch = Object.values<Json>(document.paths).some(({ patch }) => patch && isOfKind(patch))
        expect(hasPatch, kind.kind).toBe(kind.isForeign || verbsOf(kind).includes('patch'))
        const schemas = Object.values<Json>(document.components.schemas)
        const kindSchemas = schemas.filter((schema) =>
          isDeepStrictEqual(schema['x-kubernetes-group-version-kind'], [gvk]),
        )
        expect(kindSchemas, kind.kind).toHaveLength(1)
        expect(Object.keys(kindSchemas[0].properties)).toEqual(
          expect.arrayContaining(['apiVersion', 'kind', 'metadata']),
        )
      }
    })
  }
})

describe('operations', () => {
  const { paths } = readJson('/openapi/v3/api/v1')
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

  it('SYS-2 include fieldValidation for every PATCH, as kubectl requires', () => {
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

  it('contain the kind of the body if it differs from the object', () => {
    const { post } = paths['/api/v1/namespaces/{namespace}/pods/{name}/eviction']
    expect(post['x-kubernetes-group-version-kind']).toEqual({ group: 'policy', version: 'v1', kind: 'Eviction' })
    expect(post.requestBody.content['*/*'].schema.$ref).toBe('#/components/schemas/io.k8s.api.policy.v1.Eviction')
  })

  it('return the object or a Status for a delete, depending on the kind', () => {
    const responseSchema = (path: string) => paths[path].delete.responses[200].content['application/json'].schema.$ref
    expect(responseSchema('/api/v1/namespaces/{namespace}/pods/{name}')).toMatch(/v1\.Pod$/)
    expect(responseSchema('/api/v1/namespaces/{namespace}/configmaps/{name}')).toMatch(/v1\.Status$/)
  })
})

describe('Swagger 2', () => {
  it('is one document for all group versions', () => {
    const document = readJson('/openapi/v2', { accept: 'application/json' })
    expect(document.swagger).toBe('2.0')
    expect(Object.keys(document.paths)).toContain('/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}')
    expect(Object.keys(document.definitions)).toContain('io.k8s.api.storage.v1beta1.StorageClass')
  })

  it('has no dangling references', () => {
    const document = readJson('/openapi/v2')
    const names = new Set(Object.keys(document.definitions))
    const danglingRefs = [...stringValues(document, '$ref')].filter(
      (ref) => !names.has(ref.replace('#/definitions/', '')),
    )
    expect(danglingRefs).toEqual([])
  })

  it('has no type next to a reference, which clients would reject', () => {
    const schemas = Object.values<Json>(readJson('/openapi/v2').definitions).flatMap(({ properties = {} }) =>
      Object.values<Json>(properties),
    )
    expect(schemas.filter((schema) => schema.$ref && (schema.type || schema.properties))).toEqual([])
  })

  it('SYS-2 is available as protobuf under both names of its media type', () => {
    const mediaType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
    const byOldName = request('/openapi/v2', { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' })!
    const byNewName = request('/openapi/v2', { accept: mediaType })!
    const byOldPath = request('/swagger-2.0.0.pb-v1', {})!
    for (const response of [byOldName, byNewName, byOldPath]) {
      expect(response.headers['content-type']).toBe(mediaType)
      expect(response.body.equals(byOldName.body)).toBe(true)
    }
    expect(request('/openapi/v2', { accept: mediaType, 'if-none-match': byOldName.headers.etag! })!.status).toBe(304)
  })

  it('rejects other media types', () => {
    expect(() => request('/openapi/v2', { accept: 'text/html' })).toThrow(expect.objectContaining({ code: 406 }))
  })
})
