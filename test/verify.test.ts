// Runs `stowage verify` of the built program against drivers in their own processes: the fake driver, the local driver, and
// programs that are not CSI drivers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildProgram } from './helpers/build-program.ts'
import { startLocalDriver } from './helpers/local-driver.ts'
import { runStowage } from './helpers/run-stowage.ts'

let dir: string
let program: string
beforeEach(async () => {
  program = await buildProgram()
  dir = await realpath(await mkdtemp(join(tmpdir(), 'verify-test-')))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const fakeCommand = () =>
  `${process.execPath} ${join(dirname(program), 'fake-driver.js')} --endpoint unix://{socket} --state ${dir}/state.json --make-targets`
const verify = (...args: string[]) => runStowage('verify', '--work-dir', dir, ...args)
const readState = async () => JSON.parse(await readFile(join(dir, 'state.json'), 'utf8'))
const listWorkDirectories = async () => (await readdir(dir)).filter((name) => name.startsWith('stowage-verify-'))

const ATTRIBUTES_CLASS = `apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: fast}
driverName: any
parameters: {iops: "500"}
`

describe('stowage verify', () => {
  it('PLUS-7 verifies a driver that it starts and kills, and removes everything', async () => {
    const classFile = join(dir, 'class.yaml')
    await writeFile(classFile, ATTRIBUTES_CLASS)
    const junit = join(dir, 'junit.xml')
    const only = ['--only', 'life', '--only', 'life-killed-*', '--only', 'create-*']
    const { stdout, code } = await verify(
      ...['--driver', fakeCommand(), '--class', classFile, '--junit', junit, '--seed', '5', '-o', 'json', ...only],
    )
    const report = JSON.parse(stdout)
    expect(report.checks.filter(({ status }: { status: string }) => status === 'violated')).toEqual([])
    expect(report).toMatchObject({ seed: 5, leftovers: [], counts: { violated: 0, 'not run': 0 } })
    expect(report.counts.passed).toBeGreaterThan(10)
    expect(code).toBe(0)
    expect((await readState()).volumes).toEqual({})
    expect(await listWorkDirectories()).toEqual([])
    expect(await readFile(junit, 'utf8')).toMatch(
      /<testsuite name="stowage verify fake\.stowage\.example 1\.0\.0".*failures="0"/,
    )
  })

  it('PLUS-7 finds no violation of the local driver', async () => {
    const driver = await startLocalDriver({ flags: ['--pool-size', '20Gi', '--backend', 'directory'] })
    try {
      const { stdout } = await verify('--csi-address', driver.endpoint, '-o', 'json')
      const { checks, leftovers, counts } = JSON.parse(stdout)
      const isProblem = ({ status }: { status: string }) => ['violated', 'advice', 'not run'].includes(status)
      expect(
        checks.filter(isProblem).map(({ id, message }: { id: string; message: string }) => `${id}: ${message}`),
      ).toEqual([])
      expect(counts.passed).toBeGreaterThan(70)
      expect(leftovers).toEqual([])
      expect((await driver.csi.controller.listVolumes({})).entries).toEqual([])
      expect(await driver.leftovers()).toEqual([])
    } finally {
      await driver.dispose()
    }
  })

  it('PLUS-7 prints the calls that prove a violation, and the command that repeats it', async () => {
    const command = `${fakeCommand()} --name ${'x'.repeat(70)}`
    const { stdout, code } = await verify(
      '--driver',
      command,
      '--only',
      'identity-name',
      '--only',
      'life',
      '--seed',
      '9',
    )
    expect(code).toBe(1)
    expect(stdout).toContain('✖ identity-name: the driver has a valid name and a version\n  found   the name "xxx')
    expect(stdout).toMatch(/\n {4} {2}1 {2}\+\d+ ms {2}GetPluginInfo \{\}\n {9}→ OK \{"name":"xxx/)
    expect(stdout).toContain('--only identity-name --seed 9\n')
    expect(stdout).toContain('(not applicable: controllers reject the name of the driver)')
  })

  it('PLUS-7 removes its volumes when it is interrupted', async () => {
    const args = [program, 'verify', '--work-dir', dir, '--driver', fakeCommand(), '-o', 'json']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const exit = once(child, 'exit')
    await expect
      .poll(async () => Object.keys((await readState()).volumes).length, { timeout: 60_000 })
      .toBeGreaterThan(0)
    child.kill('SIGINT')
    const [code] = await exit
    expect(code).toBe(130)
    expect(JSON.parse(output)).toMatchObject({ stopped: 'interrupted', leftovers: [] })
    expect((await readState()).volumes).toEqual({})
    expect(await listWorkDirectories()).toEqual([])
  })

  it('PLUS-7 prints why a driver cannot be verified', async () => {
    const missing = await verify('--csi-address', join(dir, 'missing.sock'))
    expect(missing).toMatchObject({ code: 2, stdout: '' })
    expect(missing.stderr).toContain(`Cannot connect to the CSI driver at ${dir}/missing.sock (ENOENT)`)
    const crashed = await verify('--driver', 'echo no license >&2; exit 3')
    expect(crashed).toMatchObject({ code: 2, stdout: '' })
    expect(crashed.stderr).toContain('The driver exited with code 3. Command: echo no license >&2; exit 3')
    expect(crashed.stderr).toContain('Last output of the driver:\nno license')

    const server = createServer((socket) => void socket.on('error', () => {}).end('nonsense\n')).listen(
      join(dir, 'x.sock'),
    )
    const nonsense = await verify('--csi-address', join(dir, 'x.sock'), '--call-timeout', '2s')
    server.close()
    expect(nonsense).toMatchObject({ code: 2, stdout: '' })
    expect(nonsense.stderr).toContain('One of the first calls to the driver failed')
    expect(await listWorkDirectories()).toEqual([])
  })

  it('PLUS-7 rejects invalid flags', async () => {
    expect((await verify()).stderr).toContain('Set --csi-address to the socket of the driver, or --driver')
    expect((await verify('--only', 'nothing')).stderr).toContain('--only nothing: there is no such check')
    expect((await verify('--size', '-1')).stderr).toContain('--size "-1": expected a size such as 1Gi')
    expect((await verify('--seed', 'x')).stderr).toContain('--seed "x": expected a number')
    const secrets = join(dir, 'secrets.yaml')
    await writeFile(secrets, 'Password: {a: b}\n')
    expect((await verify('--dry-run', '--secrets', secrets)).stderr).toContain('unknown key "Password"')
    const { stdout, code } = await verify('--dry-run', '--only', 'life-*')
    expect(code).toBe(0)
    expect(stdout).toContain('life-reply-lost: a volume survives the loss of the first reply of every call\n')
  })
})
