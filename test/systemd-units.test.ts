// Tests the units in deploy/systemd: their commands and flags exist, and systemd accepts them where it is installed.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runStowage } from './helpers/run-stowage.ts'

const DIR = join(import.meta.dirname, '..', 'deploy', 'systemd')
const PROGRAM = '/usr/bin/stowage'
const units = readdirSync(DIR).map((name) => ({ name, text: readFileSync(join(DIR, name), 'utf8') }))

describe('the units for systemd', () => {
  it.each(units)('$name starts a command with flags that it has', async ({ text }) => {
    const words = /^ExecStart=(.*)$/m.exec(text)![1]!.split(' ')
    expect(words[0]).toBe(PROGRAM)
    const { stdout, code } = await runStowage(words[1]!, '--help')
    expect(code).toBe(0)
    const flags = words.filter((word) => word.startsWith('--'))
    expect(flags.filter((flag) => !new RegExp(`${flag}\\b`).test(stdout))).toEqual([])
  })

  it('are valid', () => {
    const dir = mkdtempSync(join(tmpdir(), 'stowage-units-'))
    try {
      // The program of this process exists on every machine.
      for (const { name, text } of units) writeFileSync(join(dir, name), text.replace(PROGRAM, process.execPath))
      const paths = units.map(({ name }) => join(dir, name))
      const verify = () => execFileSync('systemd-analyze', ['verify', ...paths], { encoding: 'utf8', stdio: 'pipe' })
      if (hasSystemd()) expect(verify()).toBe('')
      for (const { text } of units)
        expect(text).toMatch(/^\[Unit\]\n[\s\S]*\n\[Service\]\n[\s\S]*\n\[Install\]\nWantedBy=multi-user.target\n$/)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})

function hasSystemd(): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
