// Tests the console that `stowage up` serves, and `stowage console` in its own process. src/console has the tests of the console's
// routes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'

const WAIT_OPTIONS = { timeout: 30_000, interval: 50 }

async function startProgram(...args: string[]) {
  const child: ChildProcess = spawn(process.execPath, [await buildProgram(), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout!.setEncoding('utf8').on('data', (text) => {
    output.stdout += text
  })
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    output.stderr += text
  })
  const exit = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return {
    output,
    exit: async () => (await exit)[0] as number | null,
    stop: () => child.kill('SIGTERM'),
    untilPrinted: (text: string) => vi.waitFor(() => expect(output.stdout).toContain(text), WAIT_OPTIONS),
  }
}

async function createDataDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-up-console-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

const startUp = async (dataDir: string, ...flags: string[]) =>
  startProgram('up', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--nodes', '0', '--log-level', 'warn', ...flags)

/** Opens the printed URL as the page does. */
async function openConsole(url: string) {
  const { origin, hash } = new URL(url)
  const token = hash.slice('#token='.length)
  const headers = { 'content-type': 'application/json', origin }
  const response = await fetch(`${origin}/session`, { method: 'POST', headers, body: JSON.stringify({ token }) })
  const cookie = response.headers.get('set-cookie')!.split(';')[0]!
  return {
    origin,
    get: async (path: string): Promise<any> => (await fetch(origin + path, { headers: { cookie } })).json(),
  }
}

describe('the console of the program', () => {
  it("SYS-13 `up` prints the URL of the console in the third line, and serves the built page with the administrator's permissions", async () => {
    const dataDir = await createDataDir()
    const up = await startUp(dataDir, '--console-port', '0')
    await up.untilPrinted('Try it:')
    const lines = up.output.stdout.split('\n')
    const [, url] = /^ {2}console {5}(http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{43})$/.exec(lines[2]!)!
    const console = await openConsole(url!)
    const page = await (await fetch(`${console.origin}/`)).text()
    const [, script] = /src="(\/app-\w+\.js)"/.exec(page)!
    expect((await fetch(console.origin + script!)).headers.get('content-encoding')).toBe('gzip')
    expect(await console.get('/data/info')).toMatchObject({
      server: { isStowage: true },
      user: 'stowage-admin',
      kubeconfig: join(dataDir, 'admin.kubeconfig'),
      features: { operations: { available: true }, journal: { available: true }, metrics: { available: true } },
    })
    expect((await console.get('/k8s/api/v1/namespaces')).items.length).toBeGreaterThan(0)
    const readHistory = () => console.get('/data/history')
    await vi.waitFor(async () => expect((await readHistory()).samples).toHaveLength(1), WAIT_OPTIONS)
    expect(await readHistory()).toMatchObject({
      samples: [{ claims: { Bound: 0, Pending: 0 } }],
      sources: { claims: { available: true }, metrics: { available: true }, operations: { available: true } },
    })
    up.stop()
    expect(await up.exit()).toBe(0)
    expect(up.output.stderr).toBe('')
  })

  it('SYS-13 `up --no-console` serves no console', async () => {
    const up = await startUp(await createDataDir(), '--no-console')
    await up.untilPrinted('Try it:')
    expect(up.output.stdout).not.toContain('#token=')
  })

  it("SYS-13 `up` exits before it starts anything if the console's port is in use", async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const port = String((server.address() as { port: number }).port)
    const up = await startUp(await createDataDir(), '--console-port', port)
    expect(await up.exit()).toBe(2)
    expect(up.output.stderr).toContain(`--console-port ${port}: port ${port} of 127.0.0.1 is in use by another program`)
    expect(up.output.stdout).toBe('')
  })

  it('SYS-13 `stowage console` serves the API server of a kubeconfig until it is stopped', async () => {
    const dataDir = await createDataDir()
    const up = await startUp(dataDir, '--no-console', '--output', 'json')
    await up.untilPrinted('\n')
    const { url: server, kubeconfig } = JSON.parse(up.output.stdout)
    const program = await startProgram('console', '--kubeconfig', kubeconfig, '--port', '0', '--output', 'json')
    await program.untilPrinted('\n')
    const printed = JSON.parse(program.output.stdout)
    expect(printed).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#token=/), server })
    const console = await openConsole(printed.url)
    expect((await console.get('/data/info')).server.url).toBe(server)
    program.stop()
    expect(await program.exit()).toBe(0)
  })

  it('SYS-13 `stowage console` exits with 2 if the kubeconfig does not exist or the port is invalid', async () => {
    const missing = await startProgram('console', '--kubeconfig', '/nonexistent/kubeconfig')
    expect(await missing.exit()).toBe(2)
    expect(missing.output.stderr).toContain('Cannot use the kubeconfig /nonexistent/kubeconfig')
    const port = await startProgram('console', '--port', 'x')
    expect(await port.exit()).toBe(2)
    expect(port.output.stderr).toContain('--port "x": expected a port number')
  })
})
