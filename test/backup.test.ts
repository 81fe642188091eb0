// Tests `stowage backup` of a server under write load: each backup is consistent, and a server starts on it.
// docs/how-to/operations.md describes the command.
import { cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runStowage } from './helpers/run-stowage.ts'
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

const createConfigMap = (server: RunningServer, name: string) =>
  server.call('POST', CONFIGMAPS, { metadata: { name }, data: { filler: 'x'.repeat(500) } })

describe('stowage backup', () => {
  it('SYS-17 creates a consistent backup while 16 clients write, and a server starts on it', async () => {
    const server = await start(join(scratch, 'data'))
    /** The revision in the response, by name. */
    const acknowledged = new Map<string, number>()
    let isStopped = false
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let index = 0; !isStopped; index++) {
        const name = `w${writer}-${index}`
        const reply = await createConfigMap(server, name)
        expect(reply.status).toBe(201)
        acknowledged.set(name, Number(reply.json.metadata.resourceVersion))
      }
    })
    const acknowledgedBefore: Map<string, number>[] = []
    for (let index = 0; index < BACKUPS; index++) {
      acknowledgedBefore.push(new Map(acknowledged))
      const { code, stderr } = await runStowage(
        'backup',
        '--data-dir',
        server.dataDir,
        '--to',
        join(scratch, `b${index}`),
      )
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    }
    isStopped = true
    await Promise.all(writers)
    await server.stop()
    expect(acknowledged.size).toBeGreaterThan(acknowledgedBefore.at(-1)!.size) // writes happened during the backups

    for (const [index, acknowledgedBackup] of acknowledgedBefore.entries()) {
      const restored = await start(join(scratch, `b${index}`), 'server') // `up` requires the volumes
      const { items } = (await restored.call('GET', CONFIGMAPS)).json as {
        items: { metadata: { name: string; resourceVersion: string } }[]
      }
      const restoredRevisions = new Map(items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]))
      const backupRevision = Math.max(...restoredRevisions.values())
      const expected = [...acknowledged].filter(([, revision]) => revision <= backupRevision)
      expect(expected.filter(([name, revision]) => restoredRevisions.get(name) !== revision)).toEqual([])
      expect([...acknowledgedBackup.keys()].filter((name) => !restoredRevisions.has(name))).toEqual([])
      expect((await createConfigMap(restored, 'after-restore')).status).toBe(201)
      await restored.stop()
    }
  })

  it('SYS-17 contains all files a server needs, is private, and restores a lost store', async () => {
    const dataDir = join(scratch, 'data')
    const to = join(scratch, 'kept', 'monday')
    const server = await start(dataDir)
    await createConfigMap(server, 'saved')
    const { stdout } = await runStowage('backup', '--data-dir', dataDir, '--to', to, '-o', 'json')
    await createConfigMap(server, 'after-backup')
    await server.stop()
    expect(JSON.parse(stdout)).toMatchObject({
      to,
      files: expect.arrayContaining(['store/store.mdb', 'pki/ca.key', 'pki/tokens.json', 'admin.kubeconfig']),
    })
    for (const name of ['.', 'store', 'store/store.mdb', 'pki', 'pki/ca.key', 'admin.kubeconfig']) {
      expect((await stat(join(to, name))).mode & 0o077, name).toBe(0)
    }
    expect(await readdir(join(scratch, 'kept'))).toEqual(['monday']) // no partial backup is left

    await rm(join(dataDir, 'store'), { recursive: true })
    await expect(start(dataDir)).rejects.toThrow('Restore it from a backup')
    await cp(join(to, 'store'), join(dataDir, 'store'), { recursive: true })
    const restored = await start(dataDir)
    expect((await restored.call('GET', `${CONFIGMAPS}/saved`)).status).toBe(200)
    expect((await restored.call('GET', `${CONFIGMAPS}/after-backup`)).status).toBe(404)
  })

  it('SYS-17 rejects a target that is not empty, cannot be created or is in the data directory, and a directory without a store', async () => {
    const dataDir = join(scratch, 'data')
    await (await start(dataDir)).stop()
    await writeFile(join(scratch, 'file'), '')
    expect(await runStowage('backup', '--data-dir', dataDir, '--to', dataDir)).toMatchObject({
      code: 2,
      stderr: `stowage: --to ${dataDir}: the directory is inside the data directory. Choose another.\n`,
    })
    await mkdir(join(scratch, 'full', 'x'), { recursive: true })
    expect(await runStowage('backup', '--data-dir', dataDir, '--to', join(scratch, 'full'))).toMatchObject({
      code: 2,
      stderr: `stowage: --to ${join(scratch, 'full')}: the directory is not empty. Choose a new one.\n`,
    })
    const belowFile = await runStowage('backup', '--data-dir', dataDir, '--to', join(dataDir, '..', 'file', 'b'))
    expect(belowFile.code).toBe(2)
    expect(belowFile.stderr).toMatch(/^stowage: --to .* cannot be created: .* Choose a writable directory\.\n$/)
    const withoutStore = await runStowage('backup', '--data-dir', join(scratch, 'nowhere'), '--to', join(scratch, 'b'))
    expect(withoutStore.code).toBe(2)
    expect(withoutStore.stderr).toContain('There is no embedded store in')
    expect(await readdir(scratch)).toEqual(['data', 'file', 'full'])
  })
})
