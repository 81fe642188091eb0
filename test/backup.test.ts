// Tests `stowage backup` of a server under write load, and `stowage restore`: each backup is consistent, and a server starts
// on a restored store.
// docs/how-to/operations.md describes the command.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'
const WRITERS = 16

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

/** Runs the program with standard output redirected to a file, and the file `from` as standard input. */
async function runRedirected(
  args: readonly string[],
  { from = '/dev/null', to: outputFile }: { from?: string; to: string },
) {
  const command = 'from=$1; to=$2; shift 2; exec "$@" < "$from" > "$to"'
  return promisify(execFile)('sh', [
    '-c',
    command,
    'sh',
    from,
    outputFile,
    process.execPath,
    await buildProgram(),
    ...args,
  ])
}

const expectSuccess = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runStowage(...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

describe('stowage backup and stowage restore', () => {
  it('SYS-28 restore a backup of format 2, which a server then migrates', async () => {
    const backup = join(scratch, 'format-2')
    const file = await readFile(join(import.meta.dirname, 'releases/store-format-2.mdb.br'))
    await mkdir(join(backup, 'store'), { recursive: true })
    await writeFile(join(backup, 'store/store.mdb'), brotliDecompressSync(file))
    const dataDir = join(scratch, 'from-format-2')
    await expectSuccess('restore', '--data-dir', dataDir, backup)
    expect(await expectSuccess('store', 'check', '--data-dir', dataDir)).toContain('format 2, ')
    const server = await start(dataDir, 'server')
    expect((await server.call('GET', `${CONFIGMAPS}/large`)).status).toBe(200)

    await server.stop()
    expect(await expectSuccess('store', 'check', '--data-dir', dataDir)).toContain('format 3, ')
  })

  it('create consistent backups while 16 clients write, and restore them', async () => {
    const path = (name: string) => join(scratch, name)
    const server = await start(join(scratch, 'data'))
    /** Acknowledged revisions by ConfigMap name. */
    const acknowledged = new Map<string, number>()
    let isStopped = false
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let index = 0; !isStopped; index++) {
        const name = `w${writer}-${index}`
        const response = await createConfigMap(server, name)
        expect(response.status).toBe(201)
        acknowledged.set(name, Number(response.json.metadata.resourceVersion))
      }
    })
    const acknowledgedBefore = new Map<string, Map<string, number>>()
    const backUp = async (name: string, run: () => Promise<unknown>) => {
      acknowledgedBefore.set(name, new Map(acknowledged))
      await run()
    }
    const flags = ['backup', '--data-dir', server.dataDir]
    await backUp('directory', () => expectSuccess(...flags, '--to', path('directory')))
    await backUp('full', () => expectSuccess(...flags, '--archive', path('full')))
    await backUp('second', () => expectSuccess(...flags, '--archive', path('second'), '--since', path('full')))
    await backUp('third', async () => {
      const { stderr } = await runRedirected([...flags, '-o', '-', '--since', path('second')], { to: path('third') })
      expect(stderr).toMatch(/^Backed up changes after revision \d+ up to revision \d+: \d+ bytes\.\n/)
    })
    isStopped = true
    await Promise.all(writers)
    await server.stop()
    expect(acknowledged.size).toBeGreaterThan(acknowledgedBefore.get('third')!.size) // writes happened during the backups
    expect(await expectSuccess('backup', 'verify', path('full'), path('second'), path('third'))).toMatch(
      /^\S+full is intact: revision \d+, \d+ entries, store format \d\.\n\S+second is intact: revision \d+, changes after/,
    )

    await expectSuccess('restore', '--data-dir', path('from-directory'), path('directory'))
    await expectSuccess('restore', '--data-dir', path('from-archives'), path('full'), path('second'), path('third'))
    await runRedirected(['restore', '--data-dir', path('from-stream'), '-'], { from: path('full'), to: path('output') })
    expect(await readFile(path('output'), 'utf8')).toMatch(
      /^Restored to \S+ at revision \d+; other files: \d+ written, 0 kept because they exist\.\n$/,
    )
    for (const [dataDir, backup] of [
      ['from-directory', 'directory'],
      ['from-archives', 'third'],
      ['from-stream', 'full'],
    ] as const) {
      const acknowledgedBeforeBackup = acknowledgedBefore.get(backup)!
      const restored = await start(path(dataDir), 'server') // `up` requires the volumes
      const { items } = (await restored.call('GET', CONFIGMAPS)).json as {
        items: { metadata: { name: string; resourceVersion: string } }[]
      }
      const restoredRevisions = new Map(items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]))
      const backupRevision = Math.max(...restoredRevisions.values())
      const expectedRevisions = [...acknowledged].filter(([, revision]) => revision <= backupRevision)
      expect(expectedRevisions.filter(([name, revision]) => restoredRevisions.get(name) !== revision)).toEqual([])
      expect([...acknowledgedBeforeBackup.keys()].filter((name) => !restoredRevisions.has(name))).toEqual([])
      expect((await createConfigMap(restored, 'after-restore')).status).toBe(201)
      await restored.stop()
    }
  })

  it('copy store, PKI and kubeconfig into a private directory, and restore a lost store', async () => {
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

    expect(await runStowage('restore', '--data-dir', dataDir, to)).toMatchObject({
      code: 2,
      stderr: `stowage: ${dataDir}/store/store.mdb exists: a restore does not overwrite a store. Move it away first.\n`,
    })
    await rm(join(dataDir, 'store'), { recursive: true })
    await expect(start(dataDir)).rejects.toThrow('Restore it from a backup')
    await mkdir(join(dataDir, 'store/copy.restoring'), { recursive: true }) // as an interrupted restore leaves it
    await writeFile(join(dataDir, 'store/copy.restoring/store.mdb'), 'incomplete')
    await expect(start(dataDir)).rejects.toThrow('was interrupted: run `stowage restore` again with the same backups')
    expect(await expectSuccess('restore', '--data-dir', dataDir, to)).toContain('other files: 0 written,')
    const restored = await start(dataDir)
    expect((await restored.call('GET', `${CONFIGMAPS}/saved`)).status).toBe(200)
    expect((await restored.call('GET', `${CONFIGMAPS}/after-backup`)).status).toBe(404)
  })

  it('reject a backup without a store, and a target that is not empty, cannot be created or is in the data directory', async () => {
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
