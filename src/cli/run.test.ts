import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { runCommandLine } from './run.ts'

async function run(...args: string[]) {
  let out = ''
  let err = ''
  const code = await runCommandLine(['node', 'stowage', ...args], {
    clock: manualClock(),
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

describe('runCommandLine', () => {
  it('SYS-12 prints commands with --help, and the help of a command', async () => {
    const { code, out } = await run('--help')
    expect(code).toBe(0)
    for (const name of ['up', 'server', 'kubeconfig', 'version', 'completion']) {
      expect(out).toContain(`  ${name}`)
      expect((await run(name, '--help')).out).toContain('Usage: stowage')
    }
  })

  it('SYS-12 `help` prints the help of a command, or the list of commands if no name is given', async () => {
    expect(await run('help', 'backup')).toEqual({ code: 0, err: '', out: expect.stringContaining('stowage backup') })
    expect((await run('help')).out).toContain('capacity-cleanup')
  })

  it('SYS-12 prints the version as text and JSON', async () => {
    expect((await run('version')).out).toMatch(/^stowage \S+ \(serves v1\.\d+\.\d+\S*, node/)
    expect(JSON.parse((await run('version', '--output', 'json')).out)).toMatchObject({
      api: expect.stringContaining('stowage'),
    })
  })

  it.each([
    [['frobnicate'], 2, "stowage: unknown command 'frobnicate'"],
    [['up', '--no-such-flag'], 2, "stowage: unknown option '--no-such-flag'\n(stowage up --help lists its flags)"],
    [['help', 'bakcup'], 2, "stowage: unknown command 'bakcup'\n(Did you mean backup?)"],
    [['backup'], 2, 'stowage: set either --to for a directory or --archive for an archive'],
    [['up', '--store', 'etcd://127.0.0.1:99999'], 2, 'port 99999 is out of range'],
    [['up', '--pool-size', '1'], 2, 'expected a size of 1Mi or more'],
    [['up', '--capacity-gone-for', 'soon'], 2, '--capacity-gone-for "soon": expected a duration'],
    [['up', '--node-monitor-grace-period', '1s'], 2, '--node-monitor-grace-period "1s": expected 2s or more'],
    [['node', '--node-lease-duration', '1s'], 2, '--node-lease-duration "1s": expected 2s or more'],
    [['grow', 'a', '--to', '1Gi', '--kubeconfig', 'package.json'], 2, 'it is not a kubeconfig: it has no clusters'],
    [['grow', 'a', '--to', '1Gi', '--kubeconfig', 'src/main.ts'], 2, 'it is not a kubeconfig: its content is not YAML'],
    [['up', '--listen', 'nonsense'], 2, 'expected HOST:PORT'],
    [['up', '--listen', '127.0.0.1:99999'], 2, 'port 99999 is out of range; a port is at most 65535'],
    [['up', '--history-minutes', 'soon'], 2, 'expected a number above 0'],
    [['up', '--scrub-rate', '-1'], 2, 'expected a number of MiB per second, or 0'],
    [
      ['up', '--data-dir', '/proc/stowage-cannot-be-here', '--feature-gates', 'Nope=true'],
      2,
      'unknown feature gate "Nope"',
    ],
    [['up', '--data-dir', '/proc/stowage-cannot-be-here', '--runtime-config', 'x/v9=false'], 2, 'there is no "x/v9"'],
    [['version', '--output', 'xml'], 2, 'Allowed choices are text, json'],
    [['completion', 'tcsh'], 2, 'choose one of bash, zsh, fish'],
    [['kubeconfig', '--data-dir', '/nonexistent-stowage'], 2, 'no server has been started there'],
    [[], 2, 'Usage: stowage'],
  ])('SYS-12 %j exits with %i and an error message', async (args, code, message) => {
    const result = await run(...args)
    expect(result.err).toContain(message)
    expect(result.code).toBe(code)
    expect(result.err).not.toMatch(/\n\s+at /) // no stack traces
  })

  it.each(['bash', 'zsh', 'fish'])('prints a completion script for %s', async (shell) => {
    const { code, out } = await run('completion', shell)
    expect(code).toBe(0)
    expect(out).toContain('__complete')
  })
})

it.each([80, 120])('SYS-12 help is wrapped at %i columns', async (columns) => {
  let help = ''
  const write = (text: string) => {
    help += text
  }
  const signal = new AbortController().signal
  const deps = { clock: manualClock(), random: () => 0.5, signal, write, writeError: write, columns }
  await runCommandLine(['node', 'stowage', 'resizer', '--help'], deps)
  const flags = help.slice(help.indexOf('Options:'), help.indexOf('\nExample')) // examples are not wrapped
  const lengths = flags.split('\n').map((line) => line.length)
  expect(Math.max(...lengths)).toBeLessThanOrEqual(columns)
  expect(Math.max(...lengths)).toBeGreaterThan(columns - 15)
})
