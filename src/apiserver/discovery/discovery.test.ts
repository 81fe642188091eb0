import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { createResources, parseRuntimeConfig } from '../resources.ts'
import type { Json } from '../server.fixture.ts'
import { createDiscovery, type Discovery } from './index.ts'

const KINDS = [podKind, namespaceKind, persistentVolumeClaimKind, storageClassKind, leaseKind]
const discovery = createDiscovery(createResources(KINDS))

const readDocument = (path: string, accept?: string, source: Discovery = discovery): Json => {
  const response = source.handle(path, { host: 'stowage:6443', ...(accept ? { accept } : {}) })
  return response && JSON.parse(response.body.toString())
}
const resourceNames = (list: Json): string[] => list.resources.map(({ name }: Json) => name)

describe('negotiation of the discovery version', () => {
  const V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const V2BETA1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'
  const CASES: readonly { client: string; accept: string | undefined; version: string }[] = [
    { client: 'a client without an Accept header', accept: undefined, version: 'legacy' },
    { client: 'kubectl up to 1.25', accept: 'application/json, */*', version: 'legacy' },
    { client: 'Python', accept: 'application/json', version: 'legacy' },
    {
      client: 'a client that prefers protobuf',
      accept: 'application/vnd.kubernetes.protobuf,application/json',
      version: 'legacy',
    },
    { client: 'kubectl 1.26 to 1.29', accept: `${V2BETA1},application/json`, version: 'v2beta1' },
    { client: 'kubectl 1.30 to 1.36', accept: `${V2},${V2BETA1},application/json`, version: 'v2' },
    { client: 'kubectl 1.37', accept: `${V2},application/json`, version: 'v2' },
    { client: 'kubectl 1.37 with profile=nopeer', accept: `${V2};profile=nopeer,application/json`, version: 'v2' },
    {
      client: 'Headlamp',
      accept: 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList',
      version: 'v2',
    },
    {
      client: 'a client of an unknown version',
      accept: `${V2.replace('v2', 'v3')},application/json`,
      version: 'legacy',
    },
    { client: 'a client that prefers plain JSON', accept: `application/json,${V2}`, version: 'legacy' },
  ]

  for (const { client, accept, version } of CASES) {
    it(`SYS-2 chooses ${version} for ${client}`, () => {
      for (const path of ['/api', '/apis']) {
        const response = discovery.handle(path, accept ? { accept } : {})!
        const document = JSON.parse(response.body.toString())
        if (version === 'legacy') {
          expect(response.headers['content-type']).toBe('application/json')
          expect(document.kind).toBe(path === '/api' ? 'APIVersions' : 'APIGroupList')
        } else {
          expect(response.headers['content-type']).toBe(
            `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
          )
          expect(document).toMatchObject({
            kind: 'APIGroupDiscoveryList',
            apiVersion: `apidiscovery.k8s.io/${version}`,
          })
        }
      }
    })
  }

  it('rejects other media types and names the supported ones', () => {
    expect(() => readDocument('/apis', 'text/html')).toThrow(
      /only application\/json is served here.*accepts text\/html/,
    )
    expect(() => readDocument('/apis', V2.replace('v2', 'v3'))).toThrow(expect.objectContaining({ code: 406 }))
  })
})

describe('legacy discovery', () => {
  it('SYS-2 returns the core version and the address that the client used', () => {
    expect(readDocument('/api')).toEqual({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: 'stowage:6443' }],
    })
  })

  it('SYS-2 lists groups with their versions, the preferred one first', () => {
    const storage = {
      name: 'storage.k8s.io',
      versions: [
        { groupVersion: 'storage.k8s.io/v1', version: 'v1' },
        { groupVersion: 'storage.k8s.io/v1beta1', version: 'v1beta1' },
      ],
      preferredVersion: { groupVersion: 'storage.k8s.io/v1', version: 'v1' },
    }
    expect(readDocument('/apis')).toMatchObject({ kind: 'APIGroupList', apiVersion: 'v1' })
    expect(readDocument('/apis').groups.map(({ name }: Json) => name)).toEqual([
      'storage.k8s.io',
      'coordination.k8s.io',
    ])
    expect(readDocument('/apis').groups[0]).toEqual(storage)
    expect(readDocument('/apis/storage.k8s.io')).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...storage })
  })

  it('SYS-2 lists the resources of a group version, each followed by its subresources', () => {
    const list = readDocument('/api/v1')
    expect(list).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' })
    expect(resourceNames(list)).toEqual([
      'namespaces',
      'namespaces/finalize',
      'namespaces/status',
      'persistentvolumeclaims',
      'persistentvolumeclaims/status',
      'pods',
      'pods/attach',
      'pods/binding',
      'pods/ephemeralcontainers',
      'pods/eviction',
      'pods/exec',
      'pods/log',
      'pods/status',
    ])
    expect(list.resources[3]).toEqual({
      name: 'persistentvolumeclaims',
      singularName: 'persistentvolumeclaim',
      namespaced: true,
      kind: 'PersistentVolumeClaim',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['pvc'],
    })
    expect(list.resources[9]).toEqual({
      name: 'pods/eviction',
      singularName: '',
      namespaced: true,
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      verbs: ['create'],
    })
  })

  it('lists namespaces without deletecollection', () => {
    const [namespaces] = readDocument('/api/v1').resources
    expect(namespaces.verbs).toEqual(['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'])
  })

  it('ignores a trailing slash', () => {
    expect(readDocument('/apis/storage.k8s.io/v1/')).toEqual(readDocument('/apis/storage.k8s.io/v1'))
    expect(readDocument('/api/')).toEqual(readDocument('/api'))
  })

  it('does not handle other paths, or groups and versions that are not served', () => {
    for (const path of [
      '/',
      '/version',
      '/api/v2',
      '/apis/apps',
      '/apis/storage.k8s.io/v2',
      '/apis/a/b/c',
      '/api/v1/pods',
    ]) {
      expect(readDocument(path), path).toBeUndefined()
    }
  })
})

describe('aggregated discovery', () => {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

  it('SYS-2 returns the core group at /api', () => {
    const { items } = readDocument('/api', accept)
    expect(items).toHaveLength(1)
    expect(items[0].metadata).toEqual({})
    expect(items[0].versions).toMatchObject([{ version: 'v1', freshness: 'Current' }])
    expect(items[0].versions[0].resources.map(({ resource }: Json) => resource)).toEqual([
      'namespaces',
      'persistentvolumeclaims',
      'pods',
    ])
    expect(items[0].versions[0].resources[2]).toEqual({
      resource: 'pods',
      responseKind: { group: '', version: 'v1', kind: 'Pod' },
      scope: 'Namespaced',
      singularResource: 'pod',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['po'],
      categories: ['all'],
      subresources: [
        {
          subresource: 'attach',
          responseKind: { group: '', version: 'v1', kind: 'PodAttachOptions' },
          verbs: ['create', 'get'],
        },
        { subresource: 'binding', responseKind: { group: '', version: 'v1', kind: 'Binding' }, verbs: ['create'] },
        {
          subresource: 'ephemeralcontainers',
          responseKind: { group: '', version: 'v1', kind: 'Pod' },
          verbs: ['get', 'patch', 'update'],
        },
        {
          subresource: 'eviction',
          responseKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
          verbs: ['create'],
        },
        {
          subresource: 'exec',
          responseKind: { group: '', version: 'v1', kind: 'PodExecOptions' },
          verbs: ['create', 'get'],
        },
        { subresource: 'log', responseKind: { group: '', version: 'v1', kind: 'Pod' }, verbs: ['get'] },
        {
          subresource: 'status',
          responseKind: { group: '', version: 'v1', kind: 'Pod' },
          verbs: ['get', 'patch', 'update'],
        },
      ],
    })
  })

  it('SYS-2 returns the named groups at /apis, with versions in order of preference', () => {
    const { items } = readDocument('/apis', accept)
    expect(items.map(({ metadata }: Json) => metadata.name)).toEqual(['storage.k8s.io', 'coordination.k8s.io'])
    expect(items[0].versions.map(({ version }: Json) => version)).toEqual(['v1', 'v1beta1'])
    expect(items[0].versions[1].resources[0]).toMatchObject({
      resource: 'storageclasses',
      responseKind: { group: 'storage.k8s.io', version: 'v1beta1', kind: 'StorageClass' },
      scope: 'Cluster',
    })
  })
})

describe('a disabled version', () => {
  const discoveryWithConfig = (config: string) =>
    createDiscovery(createResources(KINDS, parseRuntimeConfig(config, KINDS)))
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

  it('SYS-15 is neither listed nor served', () => {
    const limitedDiscovery = discoveryWithConfig('storage.k8s.io/v1beta1=false')
    expect(readDocument('/apis', undefined, limitedDiscovery).groups[0].versions).toHaveLength(1)
    expect(
      readDocument('/apis', accept, limitedDiscovery).items[0].versions.map(({ version }: Json) => version),
    ).toEqual(['v1'])
    expect(readDocument('/apis/storage.k8s.io', undefined, limitedDiscovery).versions).toHaveLength(1)
    expect(readDocument('/apis/storage.k8s.io/v1beta1', undefined, limitedDiscovery)).toBeUndefined()
  })

  it('SYS-15 is removed together with its group if the group has no other version', () => {
    const limitedDiscovery = discoveryWithConfig('coordination.k8s.io/v1=false')
    expect(readDocument('/apis', undefined, limitedDiscovery).groups.map(({ name }: Json) => name)).toEqual([
      'storage.k8s.io',
    ])
    expect(readDocument('/apis/coordination.k8s.io', undefined, limitedDiscovery)).toBeUndefined()
  })

  it('SYS-15 of one resource omits the resource and its subresources', () => {
    const limitedDiscovery = discoveryWithConfig('v1/pods=false')
    expect(
      resourceNames(readDocument('/api/v1', undefined, limitedDiscovery)).filter((name) => name.startsWith('pods')),
    ).toEqual([])
  })
})

describe('conditional requests', () => {
  it('return 304 without a body if the client has the current document', () => {
    for (const path of ['/api', '/apis', '/api/v1', '/apis/storage.k8s.io/v1']) {
      const first = discovery.handle(path, {})!
      expect(first.headers.etag).toMatch(/^"[0-9A-F]{64}"$/)
      expect(first.headers.vary).toBe('Accept')
      const second = discovery.handle(path, { 'if-none-match': first.headers.etag })!
      expect(second.status).toBe(304)
      expect(second.body).toHaveLength(0)
      expect(second.headers.etag).toBe(first.headers.etag)
      expect(discovery.handle(path, { 'if-none-match': '"other"' })!.status).toBe(200)
    }
  })

  it('use a different ETag for each media type of a document', () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    const { etag } = discovery.handle('/apis', { accept })!.headers
    expect(discovery.handle('/apis', { 'if-none-match': etag })!.status).toBe(200)
    expect(discovery.handle('/apis', { accept, 'if-none-match': `"a", W/${etag}` })!.status).toBe(304)
  })
})
