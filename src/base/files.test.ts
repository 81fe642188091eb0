import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from './files.ts'

function aDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-files-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return dir
}
const modeOf = (path: string) => statSync(path).mode & 0o777

describe('writePrivateFile', () => {
  it('leaves exactly the text, readable by the owner alone, and nothing beside it', async () => {
    const dir = aDirectory()
    await writePrivateFile(join(dir, 'key'), 'secret')
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('secret')
    expect(modeOf(join(dir, 'key'))).toBe(0o600)
    expect(readdirSync(dir)).toEqual(['key'])
  })

  it('replaces a file that others could read by one they cannot', async () => {
    const path = join(aDirectory(), 'key')
    writeFileSync(path, 'old', { mode: 0o644 })
    chmodSync(path, 0o644)
    await writePrivateFile(path, 'new')
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(modeOf(path)).toBe(0o600)
  })

  it('throws away what a crash left half written', async () => {
    const dir = aDirectory()
    writeFileSync(join(dir, 'key.tmp'), 'a much longer half-written secret', { mode: 0o666 })
    await writePrivateFile(join(dir, 'key'), 'secret')
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('secret')
    expect(modeOf(join(dir, 'key'))).toBe(0o600)
    expect(readdirSync(dir)).toEqual(['key'])
  })

  it('keeps the old file when the new one cannot be written', async () => {
    const dir = aDirectory()
    writeFileSync(join(dir, 'key'), 'old')
    mkdirSync(join(dir, 'key.tmp')) // in the way
    await expect(writePrivateFile(join(dir, 'key'), 'new')).rejects.toThrow()
    expect(readFileSync(join(dir, 'key'), 'utf8')).toBe('old')
  })
})

describe('ensurePrivateDirectory', () => {
  it('makes the directory and its parents, closed to others', async () => {
    const path = join(aDirectory(), 'data', 'pki')
    await ensurePrivateDirectory(path)
    expect(modeOf(path)).toBe(0o700)
  })

  it('closes a directory that stood open, and keeps what is in it', async () => {
    const path = aDirectory()
    chmodSync(path, 0o755)
    writeFileSync(join(path, 'kept'), '')
    await ensurePrivateDirectory(path)
    expect(modeOf(path)).toBe(0o700)
    expect(readdirSync(path)).toEqual(['kept'])
  })
})

describe('readTextIfPresent', () => {
  it('tells a missing file from one it cannot read', async () => {
    const dir = aDirectory()
    expect(await readTextIfPresent(join(dir, 'missing'))).toBeUndefined()
    await expect(readTextIfPresent(dir)).rejects.toThrow('EISDIR')
  })
})

describe('ensurePrivateDirectory where nothing can be made', () => {
  it('SYS-10 fails at once where the system makes no directories, and where a file stands in the way', async () => {
    await expect(ensurePrivateDirectory('/proc/stowage-cannot-be-here/data')).rejects.toThrow(
      '/proc/stowage-cannot-be-here',
    )
    const dir = aDirectory()
    writeFileSync(join(dir, 'file'), '')
    await expect(ensurePrivateDirectory(join(dir, 'file'))).rejects.toThrow()
    await expect(ensurePrivateDirectory(join(dir, 'file', 'below'))).rejects.toThrow()
  })

  it('makes a deep path at once, also when two want it', async () => {
    for (let round = 0; round < 50; round++) {
      const deep = join(aDirectory(), 'a', 'b', 'c')
      await Promise.all(Array.from({ length: 4 }, () => ensurePrivateDirectory(deep)))
      expect(modeOf(deep)).toBe(0o700)
    }
  })
})
