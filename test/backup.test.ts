// `stowage backup` of a server under write load: each backup is the store at one moment, and a server starts on it. The
// operator's guide is docs/how-to/operations.md.
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const WRITERS = 16
const BACKUPS = 5

let scratch: string
const servers: RunningServer[] = []
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'stowage-backup-'))
})
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill().catch(() => {})))
  await rm(scratch, { recursive: true, force: true })
})

async function start(dataDir: string, command: 'up' | 'server' = 'up'): Promise<RunningServer> {
  const server = await startServer({ dataDir, command, flags: ['--log-level', 'warn'] })
  servers.push(server)
  return server
}

async function stowage(...args: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
  const program = await buildProgram()
  return promisify(execFile)(process.execPath, [program, ...args]).then(
    (done) => ({ ...done, code: 0 }),
    (error) => error,
  )
}

const write = (server: RunningServer, name: string) =>
  server.call('POST', CONFIGMAPS, { metadata: { name }, data: { filler: 'x'.repeat(500) } })

describe('stowage backup', () => {
  it('SYS-17 copies the store of one moment while 16 clients write, and a server starts on the copy', async () => {
    const server = await start(join(scratch, 'data'))
    /** Name → the revision that its writer received. */
    const acknowledged = new Map<string, number>()
    let isOver = false
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let at = 0; !isOver; at++) {
        const name = `w${writer}-${at}`
        const reply = await write(server, name)
        expect(reply.status).toBe(201)
        acknowledged.set(name, Number(reply.json.metadata.resourceVersion))
      }
    })
    const before: Map<string, number>[] = []
    for (let at = 0; at < BACKUPS; at++) {
      before.push(new Map(acknowledged))
      const { code, stderr } = await stowage('backup', '--data-dir', server.dataDir, '--to', join(scratch, `b${at}`))
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    }
    isOver = true
    await Promise.all(writers)
    await server.stop()
    expect(acknowledged.size).toBeGreaterThan(before.at(-1)!.size) // writes happened during the backups

    for (const [at, known] of before.entries()) {
      const restored = await start(join(scratch, `b${at}`), 'server') // `up` would require the volumes
      const { items } = (await restored.call('GET', CONFIGMAPS)).json as {
        items: { metadata: { name: string; resourceVersion: string } }[]
      }
      const held = new Map(items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]))
      const moment = Math.max(...held.values())
      const should = [...acknowledged].filter(([, revision]) => revision <= moment)
      expect(should.filter(([name, revision]) => held.get(name) !== revision)).toEqual([])
      expect([...known.keys()].filter((name) => !held.has(name))).toEqual([])
      expect((await write(restored, 'goes-on')).status).toBe(201)
      await restored.stop()
    }
  })

  it('SYS-17 contains all files a server needs, is private, and restores a lost store', async () => {
    const dataDir = join(scratch, 'data')
    const to = join(scratch, 'kept', 'monday')
    const server = await start(dataDir)
    await write(server, 'precious')
    const { stdout } = await stowage('backup', '--data-dir', dataDir, '--to', to, '-o', 'json')
    await write(server, 'too-late')
    await server.stop()
    expect(JSON.parse(stdout)).toMatchObject({
      to,
      files: expect.arrayContaining(['store/store.mdb', 'pki/ca.key', 'pki/tokens.json', 'admin.kubeconfig']),
    })
    for (const name of ['.', 'store', 'store/store.mdb', 'pki', 'pki/ca.key', 'admin.kubeconfig']) {
      expect((await stat(join(to, name))).mode & 0o077, name).toBe(0)
    }
    expect(await readdir(join(scratch, 'kept'))).toEqual(['monday']) // no partial backup beside it

    await rm(join(dataDir, 'store'), { recursive: true })
    await expect(start(dataDir)).rejects.toThrow('Restore it from a backup')
    await cp(join(to, 'store'), join(dataDir, 'store'), { recursive: true })
    const restored = await start(dataDir)
    expect((await restored.call('GET', `${CONFIGMAPS}/precious`)).status).toBe(200)
    expect((await restored.call('GET', `${CONFIGMAPS}/too-late`)).status).toBe(404)
  })

  it('SYS-17 refuses a non-empty target and a data directory without a store', async () => {
    const dataDir = join(scratch, 'data')
    await (await start(dataDir)).stop()
    await writeFile(join(scratch, 'file'), '')
    expect(await stowage('backup', '--data-dir', dataDir, '--to', dataDir)).toMatchObject({
      code: 2,
      stderr: `stowage: --to ${dataDir}: the directory is inside the data directory. Choose another.\n`,
    })
    await mkdir(join(scratch, 'full', 'x'), { recursive: true })
    expect(await stowage('backup', '--data-dir', dataDir, '--to', join(scratch, 'full'))).toMatchObject({
      code: 2,
      stderr: `stowage: --to ${join(scratch, 'full')}: the directory is not empty. Choose a new one.\n`,
    })
    const inFile = await stowage('backup', '--data-dir', dataDir, '--to', join(dataDir, '..', 'file', 'b'))
    expect(inFile.code).toBe(2)
    expect(inFile.stderr).toMatch(/^stowage: --to .* cannot be created: .* Choose a writable directory\.\n$/)
    const nowhere = await stowage('backup', '--data-dir', join(scratch, 'nowhere'), '--to', join(scratch, 'b'))
    expect(nowhere.code).toBe(2)
    expect(nowhere.stderr).toContain('There is no embedded store in')
    expect(await readdir(scratch)).toEqual(['data', 'file', 'full'])
  })
})
