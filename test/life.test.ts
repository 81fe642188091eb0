// Tests a server process from start to stop: what it keeps across restarts, when it does not start, the modes of its files, the
// labels of its metrics, and how it ends.
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { watchFrom } from './helpers/watch.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

describe('a server process', () => {
  let dataDir: string
  const servers = new Set<RunningServer>()
  const start = async (flags: string[] = [], command: 'up' | 'server' = 'up') => {
    const server = await startServer({ dataDir, flags, command })
    servers.add(server)
    return server
  }
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-life-'))
  })
  afterEach(async () => {
    for (const server of servers) await server.kill().catch(() => {})
    servers.clear()
    await rm(dataDir, { recursive: true, force: true })
  })

  it('SYS-1 keeps data, CA and credentials across a restart', async () => {
    const firstServer = await start()
    await firstServer.call('POST', MAPS, { metadata: { name: 'kept' }, data: { a: '1' } })
    const { uid, resourceVersion } = (await firstServer.call('GET', `${MAPS}/kept`)).json.metadata
    expect(await firstServer.stop()).toBe(0)

    const secondServer = await start()
    expect([secondServer.ca, secondServer.token]).toEqual([firstServer.ca, firstServer.token])
    const { metadata, data } = (await secondServer.call('GET', `${MAPS}/kept`)).json
    expect([metadata.uid, metadata.resourceVersion, data]).toEqual([uid, resourceVersion, { a: '1' }])
    const { json } = await secondServer.call('POST', MAPS, { metadata: { name: 'newer' } })
    expect(Number(json.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion))
  })

  it('SYS-9 creates files to which the group and others have no access', async () => {
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

  it('keeps running if a second process starts on its directory, and the second prints the PID of the first and exits', async () => {
    const firstServer = await start()
    const secondStart = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      dataDir,
      '--listen',
      '127.0.0.1:0',
    ])
    const failure = await secondStart.then(
      () => undefined,
      (error) => error,
    )
    expect(failure?.code).toBe(1)
    expect(failure.stderr).toContain(dataDir)
    expect(failure.stderr).toContain(String(firstServer.pid))
    expect((await firstServer.call('GET', '/readyz')).text).toBe('ok')
  })

  it('SYS-1 starts despite the lock of a killed process', async () => {
    const firstServer = await start()
    await firstServer.kill()
    const secondServer = await start()
    expect((await secondServer.call('GET', '/readyz')).text).toBe('ok')
  })

  it('SYS-20 fails to start if the store of an existing directory is empty', async () => {
    const firstServer = await start()
    await firstServer.stop()
    await truncate(join(dataDir, 'store', 'store.mdb'), 0)
    const secondStart = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      dataDir,
      '--listen',
      '127.0.0.1:0',
    ])
    await expect(secondStart).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('is missing or empty') })
  })

  it('SYS-20 fails to start while the disk of its volumes is not mounted, and starts once it is', async () => {
    const volumes = join(dataDir, 'disk')
    const flags = ['--volumes-dir', volumes]
    await (await start(flags)).stop()
    await rename(volumes, `${volumes}-unmounted`)
    await mkdir(volumes)
    const secondStart = promisify(execFile)(process.execPath, [
      ...[await buildProgram(), 'up', '--data-dir', dataDir, '--listen', '127.0.0.1:0'],
      ...flags,
    ])
    const message = `${volumes} is not the directory in which volumes were created before: it lacks the mark`
    await expect(secondStart).rejects.toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) })
    expect(await readdir(volumes)).toEqual([])
    await rm(volumes, { recursive: true })
    await rename(`${volumes}-unmounted`, volumes)
    expect((await (await start(flags)).call('GET', '/readyz')).text).toBe('ok')
  })

  it("keeps an existing directory's mode", async () => {
    await chmod(dataDir, 0o755)
    await start()
    expect((await stat(dataDir)).mode & 0o777).toBe(0o755)
    for (const name of ['store', 'pki']) expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o700)
  })

  it('does not use unknown request paths as metric labels', async () => {
    const server = await start()
    for (let i = 0; i < 50; i++) await server.call('GET', `/apis/invented${i}.example.com/v1/things${i}`)
    await server.call('GET', '/api/v1/namespaces/default/secrets%00')
    const { text } = await server.call('GET', '/metrics')
    expect(text).not.toMatch(/invented|things/)
    expect(text).not.toContain('\u0000')
    expect(text).toContain('resource="other"')
  })

  it('deletes an unused claim, and a namespace with a claim in it', async () => {
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

  it('ends watches, keeps an acknowledged write and exits with 0 on SIGTERM', async () => {
    const server = await start()
    const watch = watchFrom(server, MAPS, 1)
    await server.call('POST', MAPS, { metadata: { name: 'last' } })
    await watch.waitUntil((events) => events.some(({ object }) => object.metadata.name === 'last'))
    const inFlightWrite = server
      .call('POST', MAPS, { metadata: { name: 'in-flight' } })
      .then(({ status }) => status)
      .catch(() => 'rejected')
    expect(await server.stop()).toBe(0)
    await watch.whenEnded()
    const outcome = await inFlightWrite
    const restartedServer = await start()
    const { status } = await restartedServer.call('GET', `${MAPS}/in-flight`)
    if (outcome === 201) expect(status).toBe(200) // acknowledged, so it must be stored
  })

  it('exits with a message if its port is in use', async () => {
    const firstServer = await start()
    const otherDataDir = await mkdtemp(join(tmpdir(), 'stowage-life-'))
    const { port } = new URL(firstServer.url)
    const secondServer = promisify(execFile)(process.execPath, [
      await buildProgram(),
      'up',
      '--data-dir',
      otherDataDir,
      '--listen',
      `127.0.0.1:${port}`,
    ])
    await expect(secondServer).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the address is in use'),
    })
    await rm(otherDataDir, { recursive: true, force: true })
  })

  it('`server` runs no controllers, so that a deleted namespace stays Terminating', async () => {
    const server = await start([], 'server')
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await server.call('DELETE', '/api/v1/namespaces/shop')
    const { json } = await server.call('GET', '/api/v1/namespaces/shop')
    expect(json.status.phase).toBe('Terminating')
  })

  it('`kubeconfig --user viewer` prints a kubeconfig of the viewer', async () => {
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
    const serverAddress = (text: string) => /server: (.*)/.exec(text)?.[1]
    expect(serverAddress(stdout)).toBe(serverAddress(admin))
  })
})
