// Tests `stowage status`, `stowage stop` and `stowage kubeconfig --merge` on servers in their own process.
// docs/reference/running.md describes them.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { type CommandResult, runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const OWNER_UID = 65_534
const OTHER_UID = 65_533
const run = promisify(execFile)
const isRoot = process.getuid?.() === 0

let dataDir: string
const servers: RunningServer[] = []
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-status-'))
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill().catch(() => {})
  await rm(dataDir, { recursive: true, force: true })
})

async function start(options: Partial<Parameters<typeof startServer>[0]> = {}): Promise<RunningServer> {
  const server = await startServer({ dataDir, flags: ['--log-level', 'warn'], ...options })
  servers.push(server)
  return server
}

async function readStatus() {
  const { code, stdout } = await runStowage('status', '--data-dir', dataDir, '-o', 'json')
  return { code, ...JSON.parse(stdout) }
}

const runAs = async (uid: number, ...args: string[]): Promise<CommandResult> =>
  run(process.execPath, [await buildProgram(), ...args], { uid, gid: uid, cwd: '/' }).then(
    (result) => ({ ...result, code: 0 }),
    (error) => error,
  )

describe('status, stop and kubeconfig --merge', () => {
  it('SYS-25 show a running server, stop it, and report that no server runs afterwards', async () => {
    const { pid, url } = await start({ nodes: 1, flags: ['--pool-size', '64Mi', '--log-level', 'warn'] })
    expect(await readStatus()).toMatchObject({
      code: 0,
      isRunning: true,
      isHealthy: true,
      problems: [],
      server: { pid, url, command: 'up' },
      store: { kind: 'embedded', objects: expect.any(Number), bytes: expect.any(Number) },
      nodes: [{ name: 'node-1', isReady: true }],
      drivers: [{ name: 'local.csi.stowage.dev', nodes: ['node-1'] }],
      certificates: ['ca', 'serving', 'admin', 'viewer'].map((name) => ({ name, isExpired: false })),
    })
    const text = await runStowage('status', '--data-dir', dataDir)
    expect(text.stdout).toMatch(
      new RegExp(`is running: stowage up, pid ${pid}, up for .*\\n +API +${url}\\n +health +ok\\n`),
    )

    expect((await runStowage('stop', '--data-dir', dataDir, '--dry-run')).stdout).toBe(
      `Would stop the server on ${dataDir} (pid ${pid}).\n`,
    )
    const stopResult = await runStowage('stop', '--data-dir', dataDir, '-o', 'json')
    expect([stopResult.code, JSON.parse(stopResult.stdout).pid]).toEqual([0, pid])
    expect(await runStowage('stop', '--data-dir', dataDir)).toMatchObject({
      code: 0,
      stdout: `No server runs on ${dataDir}.\n`,
    })
    expect(await readStatus()).toMatchObject({ code: 1, isRunning: false, problems: ['not running'] })
  })

  it('SYS-25 report that a hanging server is unhealthy, and that it has not exited after stop', async () => {
    const { pid } = await start({ command: 'server' })
    process.kill(pid, 'SIGSTOP')
    try {
      expect(await readStatus()).toMatchObject({
        code: 1,
        isRunning: true,
        isHealthy: false,
        problems: [expect.stringMatching(/is unavailable: .* did not respond within 5 s/)],
      })
      const { code, stderr } = await runStowage('stop', '--data-dir', dataDir, '--timeout', '200ms')
      expect([code, stderr]).toEqual([1, expect.stringContaining('has not exited within 0.2 s')])
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  })

  it('SYS-25 detect a killed server, and send no signal to another process with its PID', async () => {
    const server = await start({ command: 'server' })
    const file = join(dataDir, 'server.json')
    await server.kill()
    expect(await readStatus()).toMatchObject({
      code: 1,
      isRunning: false,
      problems: [expect.stringContaining('did not stop cleanly')],
    })
    const bystander = spawn('sleep', ['600'])
    const exit = once(bystander, 'exit')
    const record = JSON.parse(await readFile(file, 'utf8'))
    await writeFile(file, JSON.stringify({ ...record, pid: bystander.pid }))
    expect(await readStatus()).toMatchObject({ isRunning: false })
    expect((await runStowage('stop', '--data-dir', dataDir)).stdout).toContain('No server runs')
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull()
    bystander.kill()
    await exit
  })

  it('SYS-25 report a running server that the record does not identify, as in another PID namespace, and do not stop it', async () => {
    await start({ command: 'server' })
    const file = join(dataDir, 'server.json')
    const record = JSON.parse(await readFile(file, 'utf8'))
    const exit = { code: 1, stderr: expect.stringContaining('another container or PID namespace') }
    for (const content of [{ ...record, pid: 4_000_000 }, {}]) {
      await writeFile(file, JSON.stringify(content))
      expect(await runStowage('stop', '--data-dir', dataDir)).toMatchObject(exit)
      expect(await runStowage('reset', '--yes', '--data-dir', dataDir)).toMatchObject(exit)
      const problems = [expect.stringContaining('running, but this command cannot find its process')]
      expect(await readStatus()).toMatchObject({ code: 1, isRunning: true, isHealthy: false, problems })
    }
  })

  it('SYS-25 add a context that kubectl uses, and that reset removes', async () => {
    await start({ command: 'server' })
    const env = { ...process.env, HOME: dataDir, KUBECONFIG: '' }
    const kubectl = (...args: string[]) => run('kubectl', args, { env }).then(({ stdout }) => stdout)
    await kubectl('config', 'set-context', 'mine', '--cluster=elsewhere')
    await kubectl('config', 'use-context', 'mine')
    const configBefore = await kubectl('config', 'view', '--raw', '-o', 'json')
    const args = ['kubeconfig', '--merge', '--context', 'dev', '--data-dir', dataDir]
    const { stdout } = await run(process.execPath, [await buildProgram(), ...args], { env })
    expect(stdout).toContain('Added the context "dev"')
    expect(await kubectl('config', 'current-context')).toBe('dev\n')
    expect(await kubectl('get', 'namespace', 'default', '-o', 'name')).toBe('namespace/default\n')

    const { code, stdout: report } = await runStowage('reset', '--yes', '--data-dir', dataDir)
    expect([code, report]).toEqual([
      0,
      expect.stringContaining(`remove the context "dev" from ${dataDir}/.kube/config`),
    ])
    expect(report).toContain('Left, because Stowage did not create it: .kube')
    servers.pop()
    expect(await kubectl('config', 'view', '--raw', '-o', 'json')).toBe(configBefore)
  })

  it.skipIf(!isRoot)(
    'SYS-25 work for the owner of the data directory without root, and reject another user',
    async () => {
      await run('chown', [String(OWNER_UID), dataDir])
      await start({ command: 'server', uid: OWNER_UID })
      expect(await runAs(OWNER_UID, 'status', '--data-dir', dataDir)).toMatchObject({ code: 0 })
      expect(await runAs(OTHER_UID, 'status', '--data-dir', dataDir)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('Run the command as the owner of the directory or as root.'),
      })
      await chmod(dataDir, 0o755)
      expect(await runAs(OTHER_UID, 'stop', '--data-dir', dataDir)).toMatchObject({ code: 1 })
      expect(await runAs(OWNER_UID, 'stop', '--data-dir', dataDir)).toMatchObject({ code: 0 })
    },
  )
})
