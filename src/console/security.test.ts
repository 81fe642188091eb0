// Tests the access control of the console (Host, Origin, body type, token and session) and the headers of every response.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { loadConsoleOptions } from '../cli/commands/console/load-options.ts'
import { createConsoleFixture, startConsole } from './console.fixture.ts'
import { listenConsole } from './listener.ts'

const ROUTES = ['/', '/app-1.js', '/session', '/k8s/api/v1/pods', '/data/info', '/nothing'] as const

const nowhere = { server: 'http://127.0.0.1:1', credentials: async () => ({}) }

describe('the console', () => {
  it.each(ROUTES)('SYS-13 rejects a host other than the loopback address on %s', async (path) => {
    const console = await startConsole(nowhere)
    for (const host of ['evil.example', `evil.example:${console.listener.port}`, '127.0.0.1', '127.0.0.1:1']) {
      const response = await console.send(path, { headers: { host } })
      expect(response).toMatchObject({ status: 421, body: { kind: 'Status', reason: 'MisdirectedRequest' } })
    }
  })

  it('SYS-13 sends the policy and the other headers with every response, and no CORS header', async () => {
    const console = await startConsole(nowhere)
    for (const path of ROUTES) {
      const { headers } = await console.send(path)
      expect(headers).toMatchObject({
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      })
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    expect((await console.send('/data/info')).headers['cache-control']).toBe('no-store')
  })

  it('SYS-13 exchanges the token for a cookie that scripts cannot read, and rejects other tokens', async () => {
    const console = await startConsole(nowhere)
    const headers = { origin: console.origin, 'content-type': 'application/json' }
    for (const body of [{ token: 'wrong' }, {}, { token: 1 }]) {
      const response = await console.send('/session', { method: 'POST', headers, body })
      expect(response).toMatchObject({ status: 401, body: { reason: 'SessionRequired' } })
      expect(response.headers['set-cookie']).toBeUndefined()
    }
    expect(console.token).toMatch(/^[\w-]{43}$/) // 256 bits
    const [cookie] = (await console.signIn()).headers['set-cookie']!
    expect(cookie).toMatch(
      new RegExp(
        `^stowage-console-${console.listener.port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200$`,
      ),
    )
    await console.signIn() // another browser
    expect((await console.request('/k8s/version')).status).toBe(503) // the session is valid; there is no API server
  })

  it('SYS-13 returns 401 without a session, after its end and after 12 hours', async () => {
    const clock = manualClock()
    const console = await startConsole(nowhere, { clock: { ...clock, after: clock.after, sleep: clock.sleep } })
    for (const path of ['/k8s/api/v1/pods', '/data/info']) {
      const response = await console.send(path, {
        headers: { cookie: `stowage-console-${console.listener.port}=guess` },
      })
      expect(response).toMatchObject({ status: 401, body: { kind: 'Status', reason: 'SessionRequired' } })
    }
    await console.signIn()
    expect((await console.request('/data/nothing')).status).toBe(404)
    await clock.advance(12 * 60 * 60_000)
    expect((await console.request('/data/nothing')).status).toBe(401)
    await console.signIn()
    expect((await console.request('/data/nothing')).status).toBe(404)
    const { headers } = await console.request('/session', { method: 'DELETE' })
    expect(headers['set-cookie']![0]).toContain('Max-Age=0')
    expect((await console.request('/data/nothing')).status).toBe(401)
  })

  it('SYS-13 accepts writes only from its own origin, and rejects reads from other sites', async () => {
    const { console } = await createConsoleFixture()
    const path = '/k8s/api/v1/namespaces'
    const body = { metadata: { name: 'shop' } }
    for (const headers of [{ origin: undefined }, { origin: 'https://evil.example' }, { origin: 'null' }]) {
      expect((await console.request(path, { method: 'POST', headers, body })).status).toBe(403)
    }
    const crossSite = { 'sec-fetch-site': 'cross-site' }
    expect((await console.request(path, { method: 'POST', headers: crossSite, body })).status).toBe(403)
    expect((await console.request(path, { headers: crossSite })).status).toBe(403)
    expect((await console.request(path, { headers: { 'sec-fetch-site': 'same-site' } })).status).toBe(403)
    const ownHeaders = { origin: console.origin, 'content-type': 'application/json' }
    const signIn = { method: 'POST', body: { token: console.token } }
    expect((await console.send('/session', { ...signIn, headers: { ...ownHeaders, origin: undefined } })).status).toBe(
      403,
    )
    expect((await console.request(path, { method: 'POST', body })).status).toBe(201)
  })

  it('SYS-13 rejects bodies that a form can send', async () => {
    const { console } = await createConsoleFixture()
    for (const type of [
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain',
      undefined,
    ]) {
      const headers = { 'content-type': type }
      const request = { method: 'POST', headers, body: '{}' }
      expect((await console.request('/k8s/api/v1/namespaces', request)).status).toBe(415)
      expect((await console.request('/session', request)).status).toBe(415)
    }
  })

  it('rejects a body of more than 4 MiB', async () => {
    const { console } = await createConsoleFixture()
    const body = { text: 'x'.repeat(4 * 1024 * 1024) }
    expect((await console.request('/k8s/api/v1/namespaces', { method: 'POST', body })).status).toBe(413)
  })

  it('SYS-13 opens the socket only for its own page with a session', async () => {
    const { console } = await createConsoleFixture()
    await expect(console.openTab({ origin: 'https://evil.example' })).rejects.toThrow('403')
    await expect(console.openTab({ host: 'evil.example' })).rejects.toThrow('421')
    await expect(console.openTab({ cookie: '' })).rejects.toThrow('401')
    await console.openTab()
  })

  it('serves the page compressed, and allows browsers to cache only files with a hash in their name', async () => {
    const console = await startConsole(nowhere)
    expect(await console.send('/')).toMatchObject({ status: 200, headers: { 'cache-control': 'no-cache' } })
    const script = await console.send('/app-1.js', { headers: { 'accept-encoding': 'gzip, br' } })
    expect(script).toMatchObject({ body: 'brotli', headers: { 'content-encoding': 'br' } })
    expect(script.headers['cache-control']).toContain('immutable')
    expect((await console.send('/app-1.js')).body).toBe('plain')
    for (const path of ['/../package.json', '/%2e%2e/x', '/app-1.js.br'])
      expect((await console.send(path)).status).toBe(404)
    expect((await console.send('/', { method: 'POST' })).status).toBe(405)
  })

  it('SYS-13 reports a port that is in use, and what to do', async () => {
    const { listener } = await startConsole(nowhere)
    const loadOptions = () => Promise.reject(new Error('not needed'))
    await expect(listenConsole({ port: listener.port, portFlag: '--port', loadOptions })).rejects.toThrow(
      `--port ${listener.port}: port ${listener.port} of 127.0.0.1 is in use by another program. Stop it, choose another port, or set --port 0 for a free one.`,
    )
  })

  it('explains why it cannot start, and retries with the next request', async () => {
    let attempts = 0
    const listener = await listenConsole({
      port: 0,
      portFlag: '--port',
      async loadOptions() {
        if (attempts++ === 0) throw new Error('the kubeconfig cannot be read')
        return loadConsoleOptions({
          connection: nowhere,
          namespace: 'default',
          clock: systemClock(),
          random: () => 0,
          log: silentLog,
        })
      },
    })
    const read = () => fetch(`http://127.0.0.1:${listener.port}/data/info`)
    expect(await (await read()).text()).toContain('the kubeconfig cannot be read')
    expect((await read()).status).toBe(401)
    await listener.close()
  })
})
