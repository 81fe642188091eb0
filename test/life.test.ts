// The lifecycle of a server as its operator sees it: first start, second start, two on one directory, an orderly stop.
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { watchFrom } from './helpers/watch.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

describe('server lifecycle', () => {
  let dataDir: string
  const running = new Set<RunningServer>()
  const start = async (flags: string[] = [], command: 'up' | 'server' = 'up') => {
    const server = await startServer({ dataDir, flags, command })
    running.add(server)
    return server
  }
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-life-'))
  })
  afterEach(async () => {
    for (const server of running) await server.kill().catch(() => {})
    running.clear()
    await rm(dataDir, { recursive: true, force: true })
  })

  it('SYS-1 a second start continues with the same data, CA and credentials', async () => {
    const first = await start()
    await first.call('POST', MAPS, { metadata: { name: 'kept' }, data: { a: '1' } })
    const { uid, resourceVersion } = (await first.call('GET', `${MAPS}/kept`)).json.metadata
    expect(await first.stop()).toBe(0)

    const second = await start()
    expect([second.ca, second.token]).toEqual([first.ca, first.token])
    const { metadata, data } = (await second.call('GET', `${MAPS}/kept`)).json
    expect([metadata.uid, metadata.resourceVersion, data]).toEqual([uid, resourceVersion, { a: '1' }])
    const { json } = await second.call('POST', MAPS, { metadata: { name: 'newer' } })
    expect(Number(json.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion))
  })

  it('SYS-1 SYS-9 keeps private files private', async () => {
    const { kubeconfig } = await start()
    for (const file of [
      kubeconfig,
      join(dataDir, 'pki', 'ca.key'),
      join(dataDir, 'pki', 'tokens.json'),
      join(dataDir, 'pki', 'serving.key'),
    ]) {
      expect((await stat(file)).mode & 0o777, file).toBe(0o600)
    }
    for (const dir of [dataDir, join(dataDir, 'pki'), join(dataDir, 'store')]) {
      expect((await stat(dir)).mode & 0o077, dir).toBe(0)
    }
  })

  it('SYS-1 refuses a second process on the directory, names the first, and leaves it alone', async () => {
    const first = await start()
    const again = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      dataDir,
      '--listen',
      '127.0.0.1:0',
    ])
    const refusal = await again.then(
      () => undefined,
      (error) => error,
    )
    expect(refusal?.code).toBe(1)
    expect(refusal.stderr).toContain(dataDir)
    expect(refusal.stderr).toContain(String(first.pid))
    expect((await first.call('GET', '/readyz')).text).toBe('ok')
  })

  it('SYS-1 starts despite the lock of a killed process', async () => {
    const first = await start()
    await first.kill()
    const second = await start()
    expect((await second.call('GET', '/readyz')).text).toBe('ok')
  })

  it('SYS-1 refuses to start empty where a store existed', async () => {
    const first = await start()
    await first.stop()
    await truncate(join(dataDir, 'store', 'store.mdb'), 0)
    const again = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      dataDir,
      '--listen',
      '127.0.0.1:0',
    ])
    await expect(again).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('is missing or empty') })
  })

  it('PROV-12 refuses to start while the disk of its volumes is missing, and starts once it is mounted', async () => {
    const volumes = join(dataDir, 'disk')
    const flags = ['--volumes-dir', volumes]
    await (await start(flags)).stop()
    await rename(volumes, `${volumes}-unmounted`)
    await mkdir(volumes)
    const again = promisify(execFile)(process.execPath, [
      ...[await buildProgram(), 'up', '--data-dir', dataDir, '--listen', '127.0.0.1:0'],
      ...flags,
    ])
    const refusal = `${volumes} is not the directory that volumes were created in before: it lacks the mark`
    await expect(again).rejects.toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(refusal) })
    expect(await readdir(volumes)).toEqual([])
    await rm(volumes, { recursive: true })
    await rename(`${volumes}-unmounted`, volumes)
    expect((await (await start(flags)).call('GET', '/readyz')).text).toBe('ok')
  })

  it('keeps the mode of an existing directory', async () => {
    await chmod(dataDir, 0o755)
    await start()
    expect((await stat(dataDir)).mode & 0o777).toBe(0o755)
    for (const inside of ['store', 'pki']) expect((await stat(join(dataDir, inside))).mode & 0o777).toBe(0o700)
  })

  it('SYS-10 SYS-11 does not use invented request paths as metric labels', async () => {
    const server = await start()
    for (let i = 0; i < 50; i++) await server.call('GET', `/apis/invented${i}.example.com/v1/things${i}`)
    await server.call('GET', '/api/v1/namespaces/default/secrets%00')
    const { text } = await server.call('GET', '/metrics')
    expect(text).not.toMatch(/invented|things/)
    expect(text).not.toContain('\u0000')
    expect(text).toContain('resource="other"')
  })

  it('SYS-2 deletes an unused claim and volume, and a namespace with a claim in it', async () => {
    const server = await start()
    const claim = {
      metadata: { name: 'c' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    for (const namespace of ['default', 'shop']) {
      await server.call('POST', `/api/v1/namespaces/${namespace}/persistentvolumeclaims`, claim)
    }
    await server.call('DELETE', '/api/v1/namespaces/default/persistentvolumeclaims/c')
    await server.call('DELETE', '/api/v1/namespaces/shop')
    for (const path of ['/api/v1/namespaces/default/persistentvolumeclaims/c', '/api/v1/namespaces/shop']) {
      while ((await server.call('GET', path)).status !== 404) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(server.log()).not.toContain('MaxListenersExceededWarning')
  })

  it('on SIGTERM ends watches, answers requests in flight and exits with 0', async () => {
    const server = await start()
    const watch = watchFrom(server, MAPS, 1)
    await server.call('POST', MAPS, { metadata: { name: 'last' } })
    await watch.until((seen) => seen.some(({ object }) => object.metadata.name === 'last'))
    const late = server
      .call('POST', MAPS, { metadata: { name: 'in-flight' } })
      .then(({ status }) => status)
      .catch(() => 'refused')
    expect(await server.stop()).toBe(0)
    await watch.ended()
    const answered = await late
    const after = await start()
    const { status } = await after.call('GET', `${MAPS}/in-flight`)
    if (answered === 201) expect(status).toBe(200) // acknowledged, so stored
  })

  it('reports a port that is in use', async () => {
    const first = await start()
    const other = await mkdtemp(join(tmpdir(), 'stowage-life-'))
    const { port } = new URL(first.url)
    const taken = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      other,
      '--listen',
      `127.0.0.1:${port}`,
    ])
    await expect(taken).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the address is in use'),
    })
    await rm(other, { recursive: true, force: true })
  })

  it('`server` runs no controllers: a deleted namespace waits', async () => {
    const server = await start([], 'server')
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await server.call('DELETE', '/api/v1/namespaces/shop')
    const { json } = await server.call('GET', '/api/v1/namespaces/shop')
    expect(json.status.phase).toBe('Terminating')
  })

  it('`kubeconfig` prints the viewer, who may read everything but secrets', async () => {
    await start()
    const { stdout } = await promisify(execFile)(process.execPath, [
      await buildProgram(),
      'kubeconfig',
      '--user',
      'viewer',
      '--data-dir',
      dataDir,
    ])
    const admin = await readFile(join(dataDir, 'admin.kubeconfig'), 'utf8')
    expect(stdout).toContain('stowage-viewer')
    const address = (text: string) => /server: (.*)/.exec(text)?.[1]
    expect(address(stdout)).toBe(address(admin))
  })
})
