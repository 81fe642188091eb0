import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

describe('the scheduler core', () => {
  it('imports plugins only in direct-placement.ts, offline-plugins.ts and scheduler.ts', () => {
    const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
    const coreFiles = files.filter((file) => /^[^.]+\.ts$/.test(file) && !file.startsWith('plugins/'))
    const importsPlugin = (file: string) =>
      /from '[^']*plugins\//.test(readFileSync(`${import.meta.dirname}/${file}`, 'utf8'))
    expect(coreFiles.filter(importsPlugin).sort()).toEqual([
      'direct-placement.ts',
      'offline/offline-plugins.ts',
      'scheduler.ts',
    ])
  })
})
