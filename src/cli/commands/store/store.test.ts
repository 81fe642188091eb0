import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import { openLmdbStore, type Store } from '../../../store/index.ts'
import { runCommandLine } from '../../run.ts'
import { formatInspection } from './check.ts'

const clock = systemClock()
const KEY = 'core/configmaps/default/a'
let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-store-command-'))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const openStore = (): Promise<Store> => openLmdbStore({ dir: join(dataDir, 'store'), clock })

const run = (...args: string[]) => runStowage('store', ...args, '--data-dir', dataDir)

async function runStowage(...args: string[]): Promise<{ code: number; output: string; errors: string }> {
  const output: string[] = []
  const errors: string[] = []
  const code = await runCommandLine(['node', 'stowage', ...args], {
    clock,
    random: () => 0,
    signal: new AbortController().signal,
    write: (text) => void output.push(text),
    writeError: (text) => void errors.push(text),
  })
  return { code, output: output.join(''), errors: errors.join('') }
}

async function writeDamagedStore(): Promise<void> {
  const store = await openStore()
  await store.transact(() => [{ put: KEY, value: Buffer.from('<value>') }])
  await store.transact(() => [{ put: 'core/configmaps/default/b', value: Buffer.from('intact') }])
  await store.close()
  expect((await run('check')).code).toBe(0)
  await damageValue()
}

/** Flips a bit of the value of KEY. */
async function damageValue(): Promise<void> {
  const file = join(dataDir, 'store', 'store.mdb')
  const bytes = await readFile(file)
  for (let offset = bytes.indexOf('<value>'); offset >= 0; offset = bytes.indexOf('<value>', offset + 1))
    bytes[offset]! ^= 4
  await writeFile(file, bytes)
}

describe('stowage store', () => {
  it('SYS-20 check names a damaged record and exits with 1', async () => {
    await writeDamagedStore()
    const { code, output } = await run('check')
    expect(code).toBe(1)
    expect(output).toContain(`revision 1, "${KEY}": the checksum of its value does not match`)
    expect(output).toContain('Damaged: 1 record. See what can be saved: stowage store repair --dry-run')
    const json = JSON.parse((await run('check', '-o', 'json')).output)
    expect(json).toMatchObject({ isDamaged: true, format: 3, records: 1, damagedPages: [] })
    expect(json.damagedRecords).toMatchObject([{ revision: 1, key: KEY }])
  })

  it('SYS-20 check reports archives that lack revisions as damaged, without a count of damaged records', () => {
    const result = { path: 'a', isDamaged: true, format: 3, records: 2, newestRevision: 5, damagedRecords: [] }
    expect(formatInspection({ ...result, missingRevisions: [3] })).toBe(
      'a: format 3, 2 intact records up to revision 5.\n  no archive has the revisions 3\nDamaged.\n',
    )
  })

  it('SYS-20 repair changes nothing without --yes, then drops the record, and has nothing to do the next time', async () => {
    await writeDamagedStore()
    for (const flags of [[], ['--dry-run', '--yes']]) {
      const { code, output } = await run('repair', ...flags)
      expect(code).toBe(1)
      expect(output).toContain(`dropped  revision 1, "${KEY}"`)
      expect(output).toContain('Nothing was changed')
    }
    expect((await run('check')).code).toBe(1)
    expect(await run('repair', '--yes')).toMatchObject({ code: 0, output: expect.stringContaining('Repaired') })
    expect(await run('check')).toMatchObject({ code: 0, output: expect.stringContaining('No damage found.') })
    expect(await run('repair', '--yes')).toMatchObject({
      code: 0,
      output: expect.stringContaining('nothing to repair'),
    })
    const store = await openStore()
    expect((await store.list({ prefix: '' })).entries.map(({ key }) => key)).toEqual(['core/configmaps/default/b'])
    await store.close()
  })

  it('SYS-20 check and repair read archives, and check names what is damaged in them', async () => {
    const archive = (name: string) => join(dataDir, name)
    const backUp = (name: string, ...flags: string[]) =>
      runStowage('backup', '--archive', archive(name), ...flags, '--data-dir', dataDir)
    const store = await openStore()
    await store.transact(() => [{ put: KEY, value: Buffer.from('<value>') }])
    expect(await backUp('full')).toMatchObject({ code: 0 })
    await store.transact(() => [{ put: 'core/configmaps/default/b', value: Buffer.from('intact') }])
    expect(await backUp('second', '--since', archive('full'))).toMatchObject({ code: 0 })
    await store.close()
    const checkResult = await run('check', '--backup', archive('full'), archive('second'))
    expect(checkResult).toMatchObject({
      code: 0,
      output: expect.stringContaining('2 intact records up to revision 2.'),
    })
    const incrementalResult = await run('check', '--backup', archive('second'))
    expect(incrementalResult).toMatchObject({ code: 1, output: expect.stringContaining('second is incremental') })
    expect(await run('check', '--backup', archive('full'), dataDir)).toMatchObject({ code: 2 })

    await damageValue()
    const damagedResult = await backUp('damaged')
    expect(damagedResult.code).toBe(1)
    expect(damagedResult.errors).toContain(`1 record is damaged and was copied`)
    expect(damagedResult.errors).toContain(`revision 1, "${KEY}": the checksum of its value does not match`)
    const directoryResult = await runStowage('backup', '--to', `${dataDir}-copy`, '--data-dir', dataDir)
    await rm(`${dataDir}-copy`, { recursive: true, force: true })
    expect(directoryResult).toMatchObject({ code: 1, errors: expect.stringContaining(KEY) })
    expect(await run('check', '--backup', archive('damaged'))).toMatchObject({
      code: 1,
      output: expect.stringContaining(`revision 1, "${KEY}"`),
    })
    expect(await runStowage('backup', 'verify', archive('damaged'))).toMatchObject({
      code: 1,
      output: expect.stringContaining(`revision 1, "${KEY}"`),
    })
    const repairResult = await run('repair', '--backup', archive('full'), archive('second'), '--yes')
    expect(repairResult).toMatchObject({ code: 0, output: expect.stringContaining(`restored revision 1, "${KEY}"`) })
    expect((await run('check')).code).toBe(0)

    const bytes = await readFile(archive('full'))
    bytes[bytes.length >> 1]! ^= 1
    await writeFile(archive('full'), bytes)
    expect(await run('check', '--backup', archive('full'))).toMatchObject({
      code: 1,
      output: expect.stringMatching(/full is damaged at byte \d+/),
    })
  })

  it('exits with 2 if there is no store, and while a server uses it', async () => {
    expect(await run('check')).toMatchObject({ code: 2, errors: expect.stringContaining('no embedded store') })
    const store = await openStore()
    for (const command of ['check', 'repair']) {
      expect(await run(command)).toMatchObject({ code: 2, errors: expect.stringContaining('A server runs on') })
    }
    await store.close()
  })
})
