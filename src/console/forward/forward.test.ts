import { createServer, type IncomingHttpHeaders } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createConsoleFixture, startConsole } from '../console.fixture.ts'
import { parseApiPath } from './forward-rules.ts'

describe('forwarding', () => {
  it("SYS-13 forwards reads and writes with the user's credentials", async () => {
    const { console } = await createConsoleFixture()
    const path = '/k8s/api/v1/namespaces/default/configmaps'
    const body = { metadata: { name: 'a' }, data: { x: '1' } }
    expect((await console.request(path, { method: 'POST', body })).status).toBe(201)
    const patched = await console.request(`${path}/a?fieldManager=console`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { data: { x: '2' } },
    })
    expect(patched).toMatchObject({ status: 200, body: { data: { x: '2' } } })
    const update = { ...patched.body, data: { x: '3' } }
    expect((await console.request(`${path}/a`, { method: 'PUT', body: update })).body.data).toEqual({ x: '3' })
    expect((await console.request(`${path}?labelSelector=a%3Db`)).body.items).toEqual([])
    expect((await console.request(`${path}/a`, { method: 'DELETE' })).status).toBe(200)
    expect(await console.request(`${path}/a`)).toMatchObject({
      status: 404,
      body: { kind: 'Status', reason: 'NotFound' },
    })
  })

  it('SYS-13 removes cookies and impersonation from requests, and headers that could set a cookie from responses', async () => {
    let received: IncomingHttpHeaders = {}
    const upstream = createServer((incoming, response) => {
      received = incoming.headers
      response.writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'a=b', warning: '299 - "old"' })
      response.end('{}')
    })
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void upstream.close())
    const { port } = upstream.address() as { port: number }
    const credentials = async () => ({ token: 'secret' })
    const console = await startConsole({ server: `http://127.0.0.1:${port}/cluster`, credentials })
    await console.signIn()
    const headers = { 'impersonate-user': 'admin', authorization: 'Bearer other', 'x-forwarded-for': '1.2.3.4' }
    const forwarded = await console.request('/k8s/version', { headers })
    expect(received).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'stowage-console' })
    for (const name of ['cookie', 'impersonate-user', 'x-forwarded-for', 'origin'])
      expect(received[name]).toBe(undefined)
    expect(forwarded.headers['set-cookie']).toBe(undefined)
    expect(forwarded.headers.warning).toBe('299 - "old"')
  })

  it('returns 503 if the API server is unreachable', async () => {
    const console = await startConsole({ server: 'http://127.0.0.1:1', credentials: async () => ({}) })
    await console.signIn()
    const forwarded = await console.request('/k8s/api/v1/pods')
    expect(forwarded).toMatchObject({
      status: 503,
      body: { reason: 'ServiceUnavailable' },
      headers: { 'retry-after': '1' },
    })
    expect(forwarded.body.message).toContain('cannot reach http://127.0.0.1:1: ECONNREFUSED')
  })

  it.each([
    '/api/v1/secrets',
    '/api/v1/namespaces/shop/secrets',
    '/api/v1/namespaces/shop/secrets/password',
    '/api/v1/namespaces/shop/%73ecrets',
    '/api/v1/watch/secrets',
    '/api/v1/namespaces/shop/serviceaccounts/default/token',
    '/apis/authentication.k8s.io/v1/tokenreviews',
    '/apis/stowage.dev/v1/commits',
    '/api/v1/namespaces/shop/pods/web/exec?command=sh',
    '/api/v1/namespaces/shop/pods/web/attach',
    '/api/v1/namespaces/shop/pods/web/portforward',
    '/api/v1/namespaces/shop/pods/web/proxy/index.html',
    '/api/v1/namespaces/shop/pods/web/log?follow=true',
    '/api/v1/nodes/node-1/proxy/metrics',
    '/api/v1/proxy/namespaces/shop/pods/web',
    '/api/v1/pods?watch=1',
    '/api/v1/pods?watch=',
    '/api/v1/pods?watch=f',
    '/metrics',
    '/debug/pprof',
  ])('SYS-13 does not forward %s', (path) => {
    expect(() => parseApiPath(path)).toThrow(
      expect.objectContaining({ code: 403, message: expect.stringContaining('The console does not forward') }),
    )
  })

  it.each([
    '/api/v1/../secrets',
    '/api/v1/%2e%2e/secrets',
    '/api/v1//secrets',
    '/api/v1/namespaces/shop%2Fsecrets',
    '/api/v1/pods/%zz',
    '/api/v1/pods/a%00b',
  ])('rejects the ambiguous path %s', (path) => {
    expect(() => parseApiPath(path)).toThrow(expect.objectContaining({ code: 400 }))
  })

  it.each([
    ['/api/v1/namespaces/secrets', { resource: 'namespaces', name: 'secrets' }],
    ['/api/v1/namespaces/secrets/pods', { resource: 'pods' }],
    ['/api/v1/namespaces/shop/pods/web/log?tailLines=10', { resource: 'pods', name: 'web', subresource: 'log' }],
    ['/api/v1/namespaces/shop/status', { resource: 'namespaces', name: 'shop', subresource: 'status' }],
    ['/apis/storage.k8s.io/v1/storageclasses?limit=500', { resource: 'storageclasses' }],
    ['/apis/stowage.dev/v1/operations', { resource: 'operations' }],
    ['/apis', {}],
    ['/version', {}],
  ])('forwards %s', (path, expected) => {
    expect(parseApiPath(path)).toEqual({ path, ...expected })
  })
})
