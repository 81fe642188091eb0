// Checks that --dry-run changes nothing, for `token`, `encryption rotate`, `restore`, `kubeconfig --merge` and `stop`. Most other
// commands have separate tests.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatSecretsConfiguration, generateKey } from '../apiserver/encryption/index.ts'
import { systemClock } from '../base/clock.ts'
import { openLmdbStore } from '../store/index.ts'
import { mergeContext } from './commands/kubeconfig/merge.ts'
import { startProgramFixture } from './program.fixture.ts'
import { runCommandLine } from './run.ts'

const clock = systemClock()
let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-dry-run-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', ...args], {
    clock,
    random: () => 0.5,
    signal: new AbortController().signal,
    write: (text) => {
      out += text
    },
    writeError: (text) => {
      err += text
    },
  })
  return { code, out, err }
}

describe('--dry-run', () => {
  it('of `token` creates and deletes nothing', async () => {
    const { kubeconfig } = await startProgramFixture()
    const token = (...args: string[]) => run('token', ...args, '--kubeconfig', kubeconfig, '-o', 'json')
    const planned = await token('create', '--node', 'worker-1', '--dry-run')
    expect(planned.err).toBe('')
    expect(JSON.parse(planned.out)).toMatchObject({ dryRun: true, node: 'worker-1' })
    expect(planned.out).not.toContain('"token"')
    expect(JSON.parse((await token('list')).out)).toEqual({ tokens: [] })
    const [id] = JSON.parse((await token('create', '--node', 'worker-1')).out).token.split('.')
    expect(JSON.parse((await token('delete', id, '--dry-run')).out)).toEqual({ id, dryRun: true })
    expect(JSON.parse((await token('list')).out).tokens).toHaveLength(1)
  })

  it('of `encryption rotate` names the keys, and adds none', async () => {
    const file = join(dir, 'encryption.yaml')
    const text = await formatSecretsConfiguration([generateKey('key-1')])
    await writeFile(file, text)
    const { out } = await run('encryption', 'rotate', '--encryption-provider-config', file, '--dry-run')
    expect(out).toBe(`Would add a key to ${file} before the existing ones: key-1\n`)
    expect(await readFile(file, 'utf8')).toBe(text)
  })

  it('of `restore` verifies the backup, and writes nothing', async () => {
    const store = await openLmdbStore({ dir: join(dir, 'data', 'store'), clock })
    await store.transact(() => [{ put: 'core/configmaps/default/a', value: Buffer.from('value') }])
    await store.close()
    const backup = join(dir, 'backup')
    const target = join(dir, 'target')
    const restore = (...backups: string[]) => run('restore', ...backups, '--data-dir', target, '--dry-run')
    await run('backup', '--archive', backup, '--data-dir', join(dir, 'data'))
    expect(await restore(backup)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`Would restore revision 1 to ${target}.\n`),
    })
    expect(await readdir(dir)).not.toContain('target')
    await writeFile(backup, (await readFile(backup)).subarray(0, -10))
    expect((await restore(backup)).code).toBe(1)
    expect(await restore('-')).toMatchObject({ code: 2, err: expect.stringContaining('not standard input') })
    const inUse = await run('restore', backup, '--data-dir', join(dir, 'data'), '--dry-run')
    expect(inUse).toMatchObject({ code: 2, err: expect.stringContaining('does not overwrite a store') })
  })

  it('of `kubeconfig --merge` writes no file', async () => {
    const credential = {
      server: 'https://127.0.0.1:7443',
      caCert: 'ca',
      credential: { user: 'stowage-admin', cert: 'cert', key: 'key' },
    }
    const options = { dataDir: dir, context: 'stowage', credential, env: { HOME: dir }, clock, isDryRun: true }
    expect(await mergeContext(options)).toMatchObject({ file: join(dir, '.kube', 'config'), context: 'stowage' })
    expect(await readdir(dir)).toEqual([])
    expect(await run('kubeconfig', '--dry-run')).toMatchObject({
      code: 2,
      err: expect.stringContaining('requires --merge'),
    })
  })

  it('of `stop` reports that no server runs', async () => {
    expect(await run('stop', '--data-dir', dir, '--dry-run')).toMatchObject({
      code: 0,
      out: `No server runs on ${dir}.\n`,
    })
  })
})
