import { describe, expect, it } from 'vitest'
import { parseBooleanQuery, parseRoute } from './route.ts'

const describeRoute = (request: string) => {
  const [method = '', url = ''] = request.split(' ')
  const [path = '', query = ''] = url.split('?')
  const route = parseRoute(method, path, new URLSearchParams(query))
  if (!route) return undefined
  if (route.is === 'path') return `path ${route.verb} ${route.path}`
  const { verb, group, version, plural, namespace, name, subresource } = route
  const scope = namespace ? ` in ${namespace}` : ''
  return `${verb} ${[group || 'core', version, plural].join('/')}${name ? ` ${name}` : ''}${subresource ? `/${subresource}` : ''}${scope}`
}

describe('parseRoute', () => {
  it.each([
    ['GET /api/v1/persistentvolumes', 'list core/v1/persistentvolumes'],
    ['GET /api/v1/persistentvolumes/', 'list core/v1/persistentvolumes'],
    ['GET /api/v1/persistentvolumes/disk', 'get core/v1/persistentvolumes disk'],
    ['HEAD /api/v1/persistentvolumes/disk', 'get core/v1/persistentvolumes disk'],
    ['PUT /api/v1/persistentvolumes/disk/status', 'update core/v1/persistentvolumes disk/status'],
    ['GET /api/v1/persistentvolumeclaims', 'list core/v1/persistentvolumeclaims'],
    ['GET /api/v1/persistentvolumeclaims?watch=1', 'watch core/v1/persistentvolumeclaims'],
    ['GET /api/v1/namespaces/shop/persistentvolumeclaims', 'list core/v1/persistentvolumeclaims in shop'],
    ['POST /api/v1/namespaces/shop/persistentvolumeclaims', 'create core/v1/persistentvolumeclaims in shop'],
    [
      'DELETE /api/v1/namespaces/shop/persistentvolumeclaims',
      'deletecollection core/v1/persistentvolumeclaims in shop',
    ],
    ['DELETE /api/v1/namespaces/shop/persistentvolumeclaims/a', 'delete core/v1/persistentvolumeclaims a in shop'],
    [
      'PATCH /api/v1/namespaces/shop/persistentvolumeclaims/a/status',
      'patch core/v1/persistentvolumeclaims a/status in shop',
    ],
    ['POST /api/v1/namespaces/shop/pods/web/binding', 'create core/v1/pods web/binding in shop'],
    ['GET /apis/storage.k8s.io/v1/storageclasses/fast', 'get storage.k8s.io/v1/storageclasses fast'],
    ['GET /apis/coordination.k8s.io/v1/namespaces/shop/leases/a', 'get coordination.k8s.io/v1/leases a in shop'],
    ['GET /api/v1/namespaces', 'list core/v1/namespaces'],
    ['GET /api/v1/namespaces/shop', 'get core/v1/namespaces shop in shop'],
    ['GET /api/v1/namespaces/shop/status', 'get core/v1/namespaces shop/status in shop'],
    ['PUT /api/v1/namespaces/shop/finalize', 'update core/v1/namespaces shop/finalize in shop'],
    ['GET /api/v1/namespaces/shop/configmaps/a%2Fb', 'get core/v1/configmaps a/b in shop'],
  ])('parses %s as %s', (request, expected) => {
    expect(describeRoute(request)).toBe(expected)
  })

  it.each([
    ['GET /', 'path get /'],
    ['GET /api', 'path get /api'],
    ['GET /api/v1', 'path get /api/v1'],
    ['GET /apis/storage.k8s.io/v1', 'path get /apis/storage.k8s.io/v1'],
    ['GET /healthz', 'path get /healthz'],
    ['POST /version', 'path post /version'],
  ])('parses %s as a non-resource path: %s', (request, expected) => {
    expect(describeRoute(request)).toBe(expected)
  })

  it.each(['GET /api/v1/namespaces/shop/pods/web/log/more', 'GET /api/v1/pods/%E0%A4%A'])(
    'returns undefined for %s',
    (request) => {
      expect(describeRoute(request)).toBeUndefined()
    },
  )
})

describe('parseBooleanQuery', () => {
  it.each([
    ['', false],
    ['watch=true', true],
    ['watch=1', true],
    ['watch', true],
    ['watch=', true],
    ['watch=yes', true],
    ['watch=0', false],
    ['watch=false', false],
    ['watch=False', false],
  ])('parses %j as %s', (query, expected) => {
    expect(parseBooleanQuery(new URLSearchParams(query), 'watch')).toBe(expected)
  })
})
