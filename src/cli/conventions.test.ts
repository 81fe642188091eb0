// Walks the table of commands, and checks their common conventions: an example, exit codes, --output, --no-color and
// --dry-run.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { exitCodesOf } from './exit-codes.ts'
import { createProgram, listCommandsBelow } from './program.ts'
import { runCommandLine } from './run.ts'

const deps = { clock: manualClock(), random: () => 0.5, signal: new AbortController().signal, write() {} }

const nameOf = (command: Command): string =>
  command.parent?.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()

/** The commands that a user runs, without those that only group others, such as `store`. */
const COMMANDS = listCommandsBelow(createProgram(deps)).filter(
  (command) =>
    !command.name().startsWith('__') &&
    command.name() !== 'help' &&
    (command.commands.length === 0 || command.options.length > 0),
)

const hasFlag = (command: Command, flag: string): boolean => command.options.some(({ long }) => long === flag)

async function readHelp(command: Command): Promise<string> {
  let help = ''
  const write = (text: string) => {
    help += text
  }
  await runCommandLine(['node', 'stowage', ...nameOf(command).split(' '), '--help'], {
    ...deps,
    write,
    writeError: write,
    columns: 200,
  })
  return help
}

/** Commands that print no object: processes that log, and a script. */
const WITHOUT_OUTPUT = new Set([
  'sidecar',
  'provisioner',
  'resizer',
  'controllers',
  'scheduler',
  'capacity-cleanup',
  'completion',
])

/** Commands that only read, or that run until they are stopped. `backup` writes a new file or directory, and nothing else. */
const WITHOUT_DRY_RUN = new Set([
  ...['up', 'server', 'console', 'driver', 'node'],
  ...['sidecar', 'provisioner', 'resizer', 'controllers', 'scheduler', 'capacity-cleanup'],
  ...[
    'status',
    'why',
    'simulate',
    'timeline',
    'doctor',
    'df',
    'unused',
    'node list',
    'store check',
    'backup',
    'backup verify',
  ],
  ...['capacity templates list', 'rbac print', 'version', 'completion'],
])

const PAGE = readFileSync(new URL('../../docs/reference/exit-codes.md', import.meta.url), 'utf8')

describe.each(COMMANDS.map((command) => [nameOf(command), command] as const))('stowage %s', (name, command) => {
  it('SYS-12 has an example and its exit codes in the help', async () => {
    const help = await readHelp(command)
    expect(help).toMatch(new RegExp(`\nExamples?:\n(  .*\n)*?  .*stowage ${name}\\b`))
    expect(help.match(/exit codes?/gi)).toHaveLength(1)
    for (const [code, meaning] of Object.entries(exitCodesOf(name)))
      expect(help).toContain(`  ${code.padEnd(3)}  ${meaning}\n`)
  })

  if (WITHOUT_OUTPUT.has(name)) {
    it('has no --output, because it prints no object', () => {
      expect(hasFlag(command, '--output')).toBe(false)
    })
  } else {
    it('SYS-12 has --output with text, json and yaml, and --no-color', () => {
      const output = command.options.find(({ long }) => long === '--output')
      expect(output?.argChoices?.slice(0, 3)).toEqual(['text', 'json', 'yaml'])
      expect(output?.short).toBe('-o')
      expect(hasFlag(command, '--no-color')).toBe(true)
    })
  }

  it(WITHOUT_DRY_RUN.has(name) ? 'has no --dry-run' : 'has --dry-run, because it changes something', () => {
    expect(hasFlag(command, '--dry-run')).toBe(!WITHOUT_DRY_RUN.has(name))
  })

  it('SYS-12 has a row in the reference of exit codes', () => {
    const codes = Object.entries(exitCodesOf(name)).map(([code, meaning]) => `${code}: ${meaning}`)
    expect(PAGE).toContain(`| \`stowage ${name}\` | ${codes.join('<br>')} |\n`)
  })
})

it('SYS-12 the reference of exit codes names no other commands', () => {
  const names = [...PAGE.matchAll(/^\| `stowage ([^`]+)` \|/gm)].map(([, name]) => name)
  expect(names).toEqual(COMMANDS.map(nameOf))
})
