import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readSecretDir } from './secret-dir.ts'

function createSecretDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'stowage-secret-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  return dir
}

describe('readSecretDir', () => {
  it('PROV-16 returns the files of a mounted Secret by name', () => {
    const dir = createSecretDir()
    mkdirSync(join(dir, '..2026_01_01'))
    writeFileSync(join(dir, '..2026_01_01', 'password'), 'hunter2\n')
    symlinkSync('..2026_01_01', join(dir, '..data'))
    symlinkSync(join('..data', 'password'), join(dir, 'password'))
    writeFileSync(join(dir, 'user'), 'admin')
    expect(readSecretDir(dir)).toEqual({ password: 'hunter2\n', user: 'admin' })
  })

  it('PROV-16 throws if the directory does not exist or its files are too large', () => {
    expect(() => readSecretDir('/nonexistent-stowage')).toThrowError('/nonexistent-stowage (ENOENT)')
    const dir = createSecretDir()
    writeFileSync(join(dir, 'image'), Buffer.alloc(1024 * 1024 + 1))
    expect(() => readSecretDir(dir)).toThrowError('larger than')
  })
})
