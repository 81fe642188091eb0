// Runs the console blocks of the README and of docs/tutorial/tour.md in one shell, in order, and compares the output of each
// command with the page. Ages, uids, ports, node numbers and rates vary between runs and are masked, and the lines are
// sorted.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { buildProgram } from './helpers/build-program.ts'
import { programSkipReason } from './helpers/programs.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const START = 'npm start -- '
const MATCH_MS_MAX = 60_000
const RETRY_INTERVAL_MS = 300
/** Commands that only read. They are repeated until their output equals the page. */
const READ_COMMANDS = /^(kubectl (get|events|--kubeconfig \S+ get)|tail|cat ~|find|findmnt)\b/

interface Step {
  readonly command: string
  readonly output: readonly string[]
}

const skipMessage =
  programSkipReason('kubectl', ['version', '--client']) ??
  skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'limits'])
let home: string
let shell: Shell

beforeAll(async () => {
  if (skipMessage) return
  await buildProgram()
  home = await mkdtemp(join(tmpdir(), 'stowage-tour-'))
  await symlink(join(ROOT, 'dist'), join(home, 'dist'))
  shell = startShell(home)
})

afterAll(async () => {
  if (skipMessage) return
  await shell.end()
  unmountAndDetach(home) // if a step failed, devices are still mounted
  await rm(home, { recursive: true, force: true })
})

for (const [page, lastCommand] of [
  ['README.md', 'sleep 1; kubectl get pods,pvc,pv'],
  ['docs/tutorial/tour.md', undefined],
] as const) {
  it.skipIf(skipMessage)(
    `SYS-1 ${page} shows the output of its commands${skipMessage ? ` (${skipMessage})` : ''}`,
    async () => {
      const steps = parseSteps(await readFile(join(ROOT, page), 'utf8'))
      expect(steps.length).toBeGreaterThan(5)
      for (const step of steps) {
        await expectOutput(step)
        if (step.command === lastCommand) break // the next command stops the server, which the tour needs
      }
    },
  )
}

async function expectOutput({ command, output }: Step): Promise<void> {
  const expectedLines = maskVaryingText(output)
  if (command.startsWith(START)) {
    const flags = command.slice(START.length).replace(/ *&$/, '')
    shell.type(`${process.execPath} dist/stowage.js up --listen 127.0.0.1:0 ${flags} &`)
    await shell.waitFor((text) => expectedLines.every((line) => maskVaryingText(text.split('\n')).includes(line)))
    return
  }
  // Other tests have mounts and devices too, so restrict the search to this directory.
  const scopedCommand = command.replaceAll('grep stowage/', `grep ${home}/`)
  const [, pause, commandText] = /^(sleep \d+; )?([\s\S]*)$/.exec(scopedCommand)!
  const mayRetry = pause !== undefined || READ_COMMANDS.test(command)
  const deadline = Date.now() + MATCH_MS_MAX
  for (;;) {
    const text = await shell.run(commandText!)
    const actualLines = maskVaryingText(text.split('\n'))
    const isSame = JSON.stringify(actualLines) === JSON.stringify(expectedLines)
    if (isSame) return
    if (!mayRetry || Date.now() > deadline) return expect(actualLines, command).toEqual(expectedLines)
    await new Promise((resolve) => setTimeout(resolve, RETRY_INTERVAL_MS))
  }
}

/** Returns each `$ ` line of the console blocks with its output. A here-document belongs to its command. */
function parseSteps(markdown: string): Step[] {
  const steps: { command: string; output: string[] }[] = []
  for (const [, block] of markdown.matchAll(/```console\n([\s\S]*?)```/g)) {
    let isInHereDocument = false
    for (const line of block!.trimEnd().split('\n')) {
      const lastStep = steps.at(-1)
      if (isInHereDocument) {
        lastStep!.command += `\n${line}`
        isInHereDocument = line !== 'END'
      } else if (line.startsWith('$ ')) {
        steps.push({ command: line.slice(2), output: [] })
        isInHereDocument = line.includes("<<'END'")
      } else lastStep!.output.push(line)
    }
  }
  return steps
}

function maskVaryingText(lines: readonly string[]): string[] {
  return lines
    .map((line) =>
      line
        .replaceAll(home, '~')
        .replaceAll('/root/', '~/')
        .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
        .replace(/\b\d+ ms\b/g, 'N ms')
        .replace(/(?<=^|\s)(\d+m)?\d+s(?=\s|$)/g, 'AGE')
        .replace(/\bnode-\d\b/g, 'node-N')
        .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
        .replace(/#token=\S+/, '#token=TOKEN')
        .replace(/copied, [\d.]+ s, [\d.]+ \w+\/s/, 'copied')
        .replace(/\} \d+$/, '} N')
        .replace(/ from default namespace$/, '')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter(Boolean)
    .sort()
}

function unmountAndDetach(dir: string): void {
  const runLines = (command: string, ...args: string[]) => execFileSync(command, args, { encoding: 'utf8' }).split('\n')
  for (const target of runLines('findmnt', '-rno', 'TARGET').reverse()) {
    if (target.startsWith(dir)) execFileSync('umount', [target])
  }
  for (const line of runLines('losetup', '-l', '-n', '-O', 'NAME,BACK-FILE')) {
    if (line.includes(dir)) execFileSync('losetup', ['-d', line.split(' ')[0]!])
  }
}

interface Shell {
  /** Runs a command until it ends. Returns its output, including the output of background jobs. */
  run(command: string): Promise<string>
  type(command: string): void
  waitFor(condition: (text: string) => boolean): Promise<void>
  end(): Promise<void>
}

/** Starts one bash for all commands, which keeps variables, files and background jobs. */
function startShell(dir: string): Shell {
  const { KUBECONFIG: _, XDG_DATA_HOME: __, ...env } = process.env
  const bash: ChildProcessWithoutNullStreams = spawn('bash', ['--norc'], { cwd: dir, env: { ...env, HOME: dir } })
  let text = ''
  const pendingChecks = new Set<() => void>()
  bash.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    for (const check of pendingChecks) check()
  })
  const type = (command: string): void => void bash.stdin.write(`${command}\n`)
  const waitFor = (condition: (text: string) => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`The shell printed only:\n${text}`)), MATCH_MS_MAX)
      const check = () => {
        if (!condition(text)) return
        clearTimeout(timer)
        pendingChecks.delete(check)
        resolve()
      }
      pendingChecks.add(check)
      check()
    })
  let count = 0
  type('exec 2>&1')
  return {
    type,
    waitFor,
    async run(command) {
      const endMarker = `--- command ${++count} ended ---`
      text = ''
      type(`${command}\nprintf '\\n%s\\n' '${endMarker}'`)
      await waitFor((output) => output.includes(endMarker))
      return text.slice(0, text.indexOf(endMarker))
    },
    async end() {
      const exit = new Promise((resolve) => bash.once('exit', resolve))
      bash.stdin.end('kubectl delete pods,pvc --all --timeout=30s; kill %1; wait\n') // processes of pods survive the server
      await exit
    },
  }
}
