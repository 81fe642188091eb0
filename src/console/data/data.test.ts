// Tests the responses under /data for a Stowage server, for a server without the group stowage.dev, and for a user without
// permissions.
import { describe, expect, it, vi } from 'vitest'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Client } from '../../client/index.ts'
import { RETRY_ANNOTATION } from '../../runtime/operations/retry-request.ts'
import { createConsoleFixture, startConsole, withoutStowageGroup, withUsers } from '../console.fixture.ts'

const WAIT = { timeout: 20_000, interval: 20 }

async function createClaim(client: Client, name: string, storageClassName = 'fast') {
  return client.create(persistentVolumeClaimKind, {
    metadata: { namespace: 'default', name },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  })
}

const createClass = (client: Client, name = 'fast') =>
  client.create(storageClassKind, { metadata: { name }, provisioner: 'fake.example', allowVolumeExpansion: true })

/** A Stowage server, and the same server without its own group. */
async function createBothConsoles() {
  const fixture = await createConsoleFixture()
  const stock = await startConsole(await withoutStowageGroup(fixture.connection))
  await stock.signIn()
  return { ...fixture, stock, consoles: [fixture.console, stock] }
}

describe('the data of the console', () => {
  it('SYS-13 describes the server and the user, and explains why features are unavailable', async () => {
    const { console, stock, connection } = await createBothConsoles()
    const { body } = await console.request('/data/info')
    expect(body).toMatchObject({
      server: { url: connection.server, isStowage: true, version: expect.stringContaining('stowage') },
      user: 'tester',
      namespace: 'default',
      features: { operations: { available: true }, metrics: { available: true }, nodeStats: { available: true } },
    })
    const { body: stockInfo } = await stock.request('/data/info')
    const reason = expect.stringContaining('the API server does not serve the group stowage.dev')
    const unavailable = { available: false, reason }
    expect(stockInfo).toMatchObject({
      server: { isStowage: false },
      user: 'tester',
      features: { operations: unavailable, journal: unavailable, metrics: unavailable, nodeStats: { available: true } },
    })
  })

  it('SYS-13 names the problem of a server that cannot be reached or that rejects the credentials', async () => {
    const { connection } = await createConsoleFixture(withUsers())
    const unreachable = await startConsole({ server: 'http://127.0.0.1:1', credentials: async () => ({}) })
    await unreachable.signIn()
    const { body } = await unreachable.request('/data/info')
    expect(body.server.problem).toContain('cannot reach http://127.0.0.1:1')
    expect(body.features.operations).toEqual({ available: false, reason: body.server.problem })
    const denied = await startConsole({ ...connection, credentials: async () => ({ token: 'wrong' }) })
    await denied.signIn()
    expect((await denied.request('/data/info')).body.server.problem).toContain('Unauthorized')
  })

  it('SYS-13 names the permission that a user lacks, and returns the rest', async () => {
    const { connection } = await createConsoleFixture(withUsers())
    const stranger = await startConsole({ ...connection, credentials: async () => ({ token: 'stranger' }) })
    await stranger.signIn()
    const { body } = await stranger.request('/data/info')
    expect(body.user).toBe('stranger')
    const why = await stranger.request('/data/why?kind=pvc&namespace=default&name=a')
    expect(why).toMatchObject({
      status: 200,
      body: { problem: expect.stringContaining('you need permission to list') },
    })
    expect((await stranger.request('/data/df')).body.message).toContain('you need permission to list')
    const lines = await stranger.request('/data/why-lines')
    expect(lines.body.lines).toEqual([])
    expect(lines.body.missingRules).toContain('list persistentvolumeclaims in all namespaces')
  })

  it('explains a claim with the tree of `stowage why`, and every unready claim in one line', async () => {
    const { client, consoles } = await createBothConsoles()
    const { metadata } = await createClaim(client, 'orphan', 'missing')
    for (const console of consoles) {
      const { body } = await console.request('/data/why?kind=pvc&namespace=default&name=orphan')
      expect(body).toMatchObject({
        subject: { name: 'orphan' },
        state: 'failed',
        message: expect.stringContaining('missing'),
      })
      const { body: lines } = await console.request('/data/why-lines')
      expect(lines).toMatchObject({ omitted: 0, lines: [{ uid: metadata.uid, namespace: 'default', name: 'orphan' }] })
      expect(lines.lines[0].message).toContain('missing')
      const unknown = await console.request('/data/why?kind=pvc&namespace=default&name=orphn')
      expect(unknown).toMatchObject({
        status: 200, // the page may request a claim that has been deleted
        body: { problem: expect.stringContaining('Similar names: orphan') },
      })
      expect((await console.request('/data/why?kind=secret&name=a')).status).toBe(400)
      expect((await console.request('/data/why?kind=pvc')).body.message).toBe('expected the parameters kind and name')
    }
  })

  it('returns the timeline of a claim', async () => {
    const { client, consoles } = await createBothConsoles()
    await createClaim(client, 'a')
    for (const console of consoles) {
      const { body } = await console.request('/data/timeline?kind=pvc&namespace=default&name=a')
      expect(body).toMatchObject({
        kind: 'PersistentVolumeClaim',
        name: 'a',
        source: expect.stringMatching(/journal|objects/),
      })
      const missing = await console.request('/data/timeline?kind=pvc&namespace=default&name=nothing')
      expect(missing).toMatchObject({ status: 200, body: { problem: expect.stringContaining('There is no ') } })
    }
  })

  it('returns the space used by claims and groups', async () => {
    const { client, consoles } = await createBothConsoles()
    await createClass(client)
    await createClaim(client, 'a')
    for (const console of consoles) {
      const { body } = await console.request('/data/df')
      expect(body).toMatchObject({ by: 'claim', items: [{ claim: 'a', class: 'fast', requestBytes: 2 ** 30 }] })
      expect(body.items[0].unknownReason).toBe('the claim has no volume yet')
      expect((await console.request('/data/df?by=class')).body).toMatchObject({
        by: 'class',
        items: [{ name: 'fast' }],
      })
      expect((await console.request('/data/df?by=colour')).status).toBe(400)
    }
  })

  it('simulates manifests, and claims of a class and size', async () => {
    const { client, consoles } = await createBothConsoles()
    await createClass(client)
    for (const console of consoles) {
      const simulate = (body: object) => console.request('/data/simulate', { method: 'POST', body })
      const { body } = await simulate({ className: 'fast', size: '10Gi', count: 2 })
      expect(body).toMatchObject({ fits: false, placed: [] }) // there is no node
      expect(body.rejected.map(({ kind, name }: any) => `${kind} ${name}`)).toContain('Pod would-fit-2')
      const manifest = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: b}]}\n'
      expect((await simulate({ manifests: manifest })).body.rejected).toMatchObject([{ kind: 'Pod', name: 'web' }])
      expect((await simulate({ manifests: '{' })).body.message).toContain('manifests, document 1: invalid YAML')
      expect((await simulate({ className: 'fast', size: 'big', count: 1 })).body.message).toContain('expected a size')
      expect((await simulate({ className: 'fast', size: '1Gi', count: 5_000 })).body.message).toContain(
        'from 1 to 1000',
      )
      expect((await simulate({ manifests: 1 })).status).toBe(400)
    }
  })

  it('returns the report of `stowage doctor`', async () => {
    const { consoles } = await createBothConsoles()
    for (const console of consoles) {
      const { body } = await console.request('/data/doctor')
      expect(body.checks.length).toBeGreaterThan(3)
      expect(body.counts).toEqual({
        ok: expect.any(Number),
        warning: expect.any(Number),
        error: expect.any(Number),
        unknown: expect.any(Number),
      })
    }
  })

  it('PLUS-8 explains why leaks are unknown for a driver without a socket on this machine', async () => {
    const { consoles } = await createBothConsoles()
    for (const console of consoles) {
      expect((await console.request('/data/leaks')).body.message).toContain('expected the parameter driver')
      const { status, body } = await console.request('/data/leaks?driver=no.example')
      expect(status).toBe(200)
      expect(body.problem).toMatch(/^No socket in .* responds as the driver no\.example/)
    }
  })

  it('SYS-13 reports which actions the user may take', async () => {
    const { console, connection } = await createConsoleFixture(withUsers())
    const checks = [
      { verb: 'patch', group: '', resource: 'persistentvolumeclaims', namespace: 'default', name: 'a' },
      { verb: 'list', group: 'storage.k8s.io', resource: 'storageclasses' },
      { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'default' },
    ]
    const request = { method: 'POST', body: { checks } }
    expect((await console.request('/data/access', request)).body).toEqual({ allowed: [true, true, true] })
    const viewer = await startConsole({ ...connection, credentials: async () => ({ token: 'viewer' }) })
    await viewer.signIn()
    expect((await viewer.request('/data/access', request)).body.allowed.slice(0, 2)).toEqual([false, true])
    const credentials = vi.spyOn(connection, 'credentials')
    await console.request('/data/access', request)
    expect(credentials).not.toHaveBeenCalled() // answered from the cache
    const tooMany = Array.from({ length: 101 }, () => checks[0])
    expect((await console.request('/data/access', { method: 'POST', body: { checks: tooMany } })).status).toBe(400)
    expect((await console.request('/data/access', { method: 'POST', body: { checks: [{ verb: 1 }] } })).status).toBe(
      400,
    )
  })

  it('requests a retry as `stowage retry` does', async () => {
    const { client, consoles } = await createBothConsoles()
    await createClaim(client, 'a')
    for (const console of consoles) {
      const retry = (body: object) => console.request('/data/retry', { method: 'POST', body })
      expect((await retry({ kind: 'pvc', namespace: 'default', name: 'a' })).body).toMatchObject({
        kind: 'PersistentVolumeClaim',
        namespace: 'default',
        isDryRun: false,
      })
      const { metadata } = await client.get(persistentVolumeClaimKind, { namespace: 'default', name: 'a' })
      expect(Object.keys(metadata.annotations ?? {})).toContain(RETRY_ANNOTATION)
      expect(await retry({ kind: 'pvc', namespace: 'default', name: 'b' })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('Similar names: a') },
      })
      expect((await retry({ kind: 'pvc' })).status).toBe(400)
    }
  })

  it('previews and runs a migration, and rejects invalid requests and a pause of the ended run', async () => {
    const { client, console } = await createConsoleFixture()
    for (const name of ['silver', 'gold'])
      await client.create(volumeAttributesClassKind, {
        metadata: { name },
        driverName: 'fake.example',
        parameters: { tier: name },
      })
    await createClass(client)
    await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name: 'a' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        volumeAttributesClassName: 'silver',
        resources: { requests: { storage: '1Gi' } },
      },
    })
    const post = (action: string, body: object) => console.request(`/data/bulk/${action}`, { method: 'POST', body })
    const request = { kind: 'migrate', from: 'silver', to: 'gold', rate: '10/s' }
    const preview = await post('preview', request)
    expect(preview.body).toMatchObject({ dryRun: true, claims: [{ name: 'a' }] })
    const { body: run } = await post('start', request)
    expect(run).toMatchObject({
      state: 'running',
      command: 'stowage migrate --from silver --to gold --rate 10/s --all-namespaces',
    })
    const readRun = async () => (await console.request('/data/bulk')).body.runs.find(({ id }: any) => id === run.id)
    await vi.waitFor(async () => expect((await readRun()).state).not.toBe('running'), WAIT)
    const ended = await readRun()
    expect(ended.finishedAt).toEqual(expect.any(String))
    expect((await post('start', { kind: 'migrate', from: 'silver', to: 'silver' })).body.message).toContain(
      'nothing would change',
    )
    expect((await post('start', { kind: 'dance' })).status).toBe(400)
    expect((await post('pause', { id: 'nothing' })).status).toBe(404)
    expect((await post('pause', { id: run.id })).status).toBe(400)
  })

  it('SYS-13 pauses, resumes and undoes an expansion', async () => {
    const { client, console } = await createConsoleFixture()
    await createClass(client)
    const claim = await createClaim(client, 'a')
    const { metadata } = await client.update(persistentVolumeClaimKind, {
      ...claim,
      spec: { ...claim.spec, volumeName: 'v' },
    })
    await client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: metadata.name },
      { type: 'merge', body: { status: { phase: 'Bound', capacity: { storage: '1Gi' } } } },
      { subresource: 'status' },
    )
    const post = (action: string, body: object) => console.request(`/data/bulk/${action}`, { method: 'POST', body })
    const request = { kind: 'grow', namespace: 'default', names: ['a'], to: '2Gi' }
    const { body: run } = await post('start', request)
    const readRun = async () => (await console.request('/data/bulk')).body.runs.find(({ id }: any) => id === run.id)
    const readSize = async () =>
      (await client.get(persistentVolumeClaimKind, { namespace: 'default', name: 'a' })).spec?.resources?.requests
        ?.storage
    await vi.waitFor(async () => expect(await readSize()).toBe('2Gi'), WAIT) // no controller runs, so that the run waits
    expect((await post('undo', { id: run.id })).body.message).toBe('Pause the run first.')
    await post('pause', { id: run.id })
    await vi.waitFor(async () => expect((await readRun()).state).toBe('paused'), WAIT)
    expect((await readRun()).counts).toMatchObject({ unfinished: 1 })
    expect((await post('resume', { id: run.id })).body.state).toBe('running')
    await post('pause', { id: run.id })
    await vi.waitFor(async () => expect((await readRun()).state).toBe('paused'), WAIT)
    const { body: undo } = await post('undo', { id: run.id })
    expect(undo).toMatchObject({ isUndo: true, command: 'stowage grow a --undo --namespace default' })
    await vi.waitFor(async () => expect(await readSize()).toBe('1Gi'), WAIT)
  })

  it('returns 404 for an unknown route and 405 for an unsupported method', async () => {
    const { console } = await createConsoleFixture()
    expect((await console.request('/data/nothing')).status).toBe(404)
    expect((await console.request('/data/toString')).status).toBe(404)
    expect((await console.request('/data/simulate')).status).toBe(405)
    expect((await console.request('/data/info', { method: 'POST', body: {} })).status).toBe(405)
    expect((await console.request('/data/access', { method: 'POST', body: '[]' })).status).toBe(400)
  })
})
