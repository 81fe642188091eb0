import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createPrivateFile, ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from './files.ts'

function createDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-files-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return dir
}
const modeOf = (path: string) => statSync(path).mode & 0o777

describe('writePrivateFile', () => {
  it('writes the text to a file that only its owner can read, and leaves no other file', async () => {
    const dir = createDirectory()
    await writePrivateFile(join(dir, 'key'), 'secret')
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('secret')
    expect(modeOf(join(dir, 'key'))).toBe(0o600)
    expect(readdirSync(dir)).toEqual(['key'])
  })

  it("restricts an existing file's mode", async () => {
    const path = join(createDirectory(), 'key')
    writeFileSync(path, 'old', { mode: 0o644 })
    chmodSync(path, 0o644)
    await writePrivateFile(path, 'new')
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(modeOf(path)).toBe(0o600)
  })

  it('deletes a temporary file left by a crash', async () => {
    const dir = createDirectory()
    writeFileSync(join(dir, 'key.tmp'), 'a much longer half-written secret', { mode: 0o666 })
    await writePrivateFile(join(dir, 'key'), 'secret')
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('secret')
    expect(modeOf(join(dir, 'key'))).toBe(0o600)
    expect(readdirSync(dir)).toEqual(['key'])
  })

  it('keeps the old file if the new one cannot be written', async () => {
    const dir = createDirectory()
    writeFileSync(join(dir, 'key'), 'old')
    mkdirSync(join(dir, 'key.tmp')) // blocks the temporary file
    await expect(writePrivateFile(join(dir, 'key'), 'new')).rejects.toThrow()
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('old')
  })
})

describe('ensurePrivateDirectory', () => {
  it('creates the directory and its parents with mode 0700', async () => {
    const parent = join(createDirectory(), 'data')
    const path = join(parent, 'pki')
    await ensurePrivateDirectory(path)
    expect([modeOf(parent), modeOf(path)]).toEqual([0o700, 0o700])
  })

  it('restricts the mode of an existing directory and keeps its content', async () => {
    const path = createDirectory()
    chmodSync(path, 0o755)
    writeFileSync(join(path, 'kept'), '')
    await ensurePrivateDirectory(path)
    expect(modeOf(path)).toBe(0o700)
    expect(readdirSync(path)).toEqual(['kept'])
  })
})

describe('readTextIfPresent', () => {
  it('returns undefined for a missing file and throws for an unreadable one', async () => {
    const dir = createDirectory()
    expect(await readTextIfPresent(join(dir, 'missing'))).toBeUndefined()
    await expect(readTextIfPresent(dir)).rejects.toThrow('EISDIR')
  })
})

describe('createPrivateFile', () => {
  it('creates a file that only its owner can read, and does not change an existing file', async () => {
    const path = join(createDirectory(), 'file')
    expect(await createPrivateFile(path, 'first')).toBe(true)
    expect(await createPrivateFile(path, 'second')).toBe(false)
    expect(await readTextIfPresent(path)).toBe('first')
    expect(modeOf(path)).toBe(0o600)
    expect(readdirSync(dirname(path))).toEqual(['file'])
  })
})

describe('ensurePrivateDirectory with errors and races', () => {
  it('rejects if the file system allows no directories or a path component is a file', async () => {
    await expect(ensurePrivateDirectory('/proc/stowage-cannot-be-here/data')).rejects.toThrow(
      '/proc/stowage-cannot-be-here',
    )
    const dir = createDirectory()
    writeFileSync(join(dir, 'file'), '')
    await expect(ensurePrivateDirectory(join(dir, 'file'))).rejects.toThrow()
    await expect(ensurePrivateDirectory(join(dir, 'file', 'below'))).rejects.toThrow()
  })

  it('creates 1,500 missing parents', async () => {
    const path = join(createDirectory(), ...Array<string>(1_500).fill('d'))
    await ensurePrivateDirectory(path)
    expect(modeOf(path)).toBe(0o700)
  })

  it('creates the same nested path in concurrent calls', async () => {
    for (let round = 0; round < 50; round++) {
      const nestedPath = join(createDirectory(), 'a', 'b', 'c')
      await Promise.all(Array.from({ length: 4 }, () => ensurePrivateDirectory(nestedPath)))
      expect(modeOf(nestedPath)).toBe(0o700)
    }
  })
})
