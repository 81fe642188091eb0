// Tests logs, exec, attach and cp on a server whose node runs commands: exit codes with every kubectl, exec, attach and cp with the
// oldest and the newest, logs with the newest, and exec with the official JavaScript client. FULL_SIZE=1 transfers up to 1 GiB; CI
// transfers less.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { Exec, KubeConfig } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls, type KubectlProgram } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const MIB = 1024 * 1024
const isFullSize = process.env.FULL_SIZE === '1'
const INPUT_BYTES = isFullSize ? 64 * MIB : 3 * MIB
const OUTPUT_BYTES = isFullSize ? 100_000_000 : 5_000_000
const FILE_BYTES = isFullSize ? 1024 * MIB : 2 * MIB

/** The test finds its processes by this number. */
const SLEEP_SECONDS = 10 ** 7 + process.pid

const skipMessage = skipReason(await probeThisMachine(), ['mount', 'loop'])
const kubectls = await findKubectls()
const [oldest, newest] = [kubectls[0]!, kubectls.at(-1)!]

const aContainer = (name: string, script: string, fields: object = {}) => ({
  name,
  image: 'busybox',
  command: ['sh', '-c', script],
  ...fields,
})
const aPod = (name: string, containers: object[], spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { terminationGracePeriodSeconds: 0, containers, ...spec },
})

describe.skipIf(skipMessage)(`streams of pods${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let dataDir: string
  let server: RunningServer
  let leftovers: HostLeftovers
  let node: Daemon | undefined
  const flags = ['--run-commands', '--log-level', 'warn']

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-streams-')))
    dataDir = join(dir, 'data')
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir, nodes: 1, flags })
    const forever = `while :; do sleep ${SLEEP_SECONDS}; done`
    const pods = [
      aPod('p', [aContainer('main', `trap : HUP; echo out; echo err >&2; ${forever}`)]),
      aPod('two', [
        aContainer('a', forever),
        aContainer('in', 'while read line; do echo "got $line"; done', { stdin: true }),
        aContainer('term', `stty size; read line; stty size; echo "got $line"; ${forever}`, {
          stdin: true,
          tty: true,
        }),
      ]),
      aPod('lost', [aContainer('main', 'true')], { nodeSelector: { none: 'such' } }),
      aPod('done', [aContainer('main', 'printf "one\\ntwo\\nthree\\nfour"')], { restartPolicy: 'Never' }),
      aPod('count', [aContainer('main', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done')]),
      // Fails once. The second run waits.
      aPod(
        'again',
        [
          aContainer(
            'main',
            `if [ -e /data/run ]; then echo second; ${forever}; fi; touch /data/run; echo first; exit 1`,
            {
              volumeMounts: [{ name: 'data', mountPath: '/data' }],
            },
          ),
        ],
        { volumes: [{ name: 'data', emptyDir: {} }] },
      ),
    ]
    for (const pod of pods) {
      const { status, text: body } = await server.call('POST', '/api/v1/namespaces/default/pods', pod)
      expect(status, body).toBe(201)
    }
    const wait = ['wait', '--for=condition=Ready', 'pod/p', 'pod/two', 'pod/count', '--timeout=100s']
    const { code, stderr } = await kubectl(newest, wait)
    expect(code, stderr).toBe(0) // otherwise the first test would run commands in containers that do not exist yet
  })
  afterAll(async () => {
    if (!server) return
    await kubectl(newest, ['delete', 'pods', '--all', '--force', '--grace-period=0', '--wait=false'])
    await vi.waitFor(async () => expect(await findProcesses(`sleep ${SLEEP_SECONDS}`)).toEqual([]), { timeout: 20_000 })
    await node?.stop()
    await server.stop()
    await leftovers.remove()
    await rm(dir, { recursive: true, force: true })
  })

  interface Result {
    readonly code: number
    readonly stdout: string
    readonly stderr: string
  }
  const env = () => ({ ...process.env, KUBECONFIG: server.kubeconfig })
  const start = ({ path }: KubectlProgram, args: readonly string[]): ChildProcess => spawn(path, args, { env: env() })
  async function kubectl(program: KubectlProgram, args: readonly string[], input?: string | Buffer): Promise<Result> {
    const child = start(program, args)
    child.stdin!.on('error', () => {})
    child.stdin!.end(input ?? '')
    const exit = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
    const [stdout, stderr] = await Promise.all([text(child.stdout!), text(child.stderr!)])
    return { code: await exit, stdout, stderr }
  }
  /** Runs kubectl on a terminal. */
  const kubectlOnTerminal = async (program: KubectlProgram, args: string, { rows, columns, input }: Terminal) => {
    const command = `stty rows ${rows} cols ${columns}; exec ${program.path} ${args}`
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: { ...env(), SHELL: '/bin/sh' } })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      if (input && output.includes(input.after)) child.stdin.write(input.text)
      if (input && output.includes(input.after)) input = undefined
    })
    const code = await new Promise<number>((resolve) => child.once('close', (value) => resolve(value ?? -1)))
    return { code, output }
  }
  interface Terminal {
    readonly rows: number
    readonly columns: number
    /** Text that is typed after the output contains `after`. */
    readonly input?: { readonly after: string; readonly text: string }
  }
  async function findProcesses(pattern: string): Promise<string[]> {
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid,args'])
    return stdout.split('\n').filter((line) => line.includes(pattern))
  }

  it('SYS-26 every kubectl exits with the code of the command and prints its output', async () => {
    const results = await Promise.all(
      kubectls.map((program) => kubectl(program, ['exec', 'p', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])),
    )
    for (const [index, result] of results.entries()) {
      expect(result, kubectls[index]!.version).toMatchObject({ code: 7, stdout: 'out\n' })
      expect(result.stderr).toBe('err\ncommand terminated with exit code 7\n')
    }
  })

  for (const program of [oldest, newest]) {
    describe(`kubectl ${program.version}`, () => {
      it('SYS-26 passes stdin to the command until it ends', async () => {
        const input = randomBytes(INPUT_BYTES)
        const { stdout } = await kubectl(program, ['exec', '-i', 'p', '--', 'sha256sum'], input)
        expect(stdout).toContain(createHash('sha256').update(input).digest('hex'))
      })

      it('SYS-26 sends all output of a command to a slow reader', async () => {
        const child = start(program, ['exec', 'p', '--', 'sh', '-c', `yes | head -c ${OUTPUT_BYTES}`])
        let bytes = 0
        for await (const chunk of child.stdout!) {
          bytes += chunk.length
          if (bytes % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
        expect(bytes).toBe(OUTPUT_BYTES)
      })

      it('SYS-26 gives the command a terminal of the same size as the client', async () => {
        const terminal = { rows: 33, columns: 99, input: { after: '33 99', text: 'typed\n' } }
        const script = `'stty size; read x; echo "got $x"; exit 5'`
        const { code, output } = await kubectlOnTerminal(program, `exec -it p -- sh -c ${script}`, terminal)
        expect(output).toContain('got typed')
        expect(code).toBe(5)
      })

      it('SYS-26 ends the command when the client is killed', async () => {
        const seconds = `9${program.minor}.5`
        const child = start(program, ['exec', 'p', '--', 'sh', '-c', `echo up; sleep ${seconds} & wait`])
        await new Promise((resolve) => child.stdout!.once('data', resolve))
        expect((await findProcesses(`sleep ${seconds}`)).length).toBeGreaterThan(0)
        child.kill('SIGKILL')
        await expect.poll(() => findProcesses(`sleep ${seconds}`), { timeout: 10_000 }).toEqual([])
      })

      it('SYS-26 copies a directory to a pod and back', async () => {
        const source = join(dir, `source-${program.minor}`)
        const copy = join(dir, `copy-${program.minor}`)
        await mkdir(join(source, 'sub'), { recursive: true })
        await writeFile(join(source, 'big'), randomBytes(FILE_BYTES))
        await writeFile(join(source, 'sub', 'small'), 'x')
        expect(await kubectl(program, ['cp', source, `p:/tmp/${program.minor}`])).toMatchObject({ code: 0 })
        expect(await kubectl(program, ['cp', `p:/tmp/${program.minor}`, copy])).toMatchObject({ code: 0 })
        for (const file of ['big', 'sub/small']) {
          expect((await readFile(join(copy, file))).equals(await readFile(join(source, file)))).toBe(true)
        }
      })

      it('SYS-26 attaches to the input and output of a container', async () => {
        const child = start(program, ['attach', '-i', 'two', '-c', 'in'])
        child.stdin!.write(`hello ${program.minor}\n`)
        let output = ''
        for await (const chunk of child.stdout!) {
          output += chunk
          if (output.includes(`got hello ${program.minor}`)) break
        }
        child.kill('SIGKILL')
        expect(output).toContain(`got hello ${program.minor}`)
      })

      it('SYS-26 prints the reason for a rejected command', async () => {
        const run = async (...args: string[]) => (await kubectl(program, args)).stderr
        expect(await run('exec', 'two', '-c', 'zz', '--', 'true')).toContain('container zz is not valid for pod two')
        expect(await run('exec', 'lost', '--', 'true')).toMatch(
          /pod lost does not have a host assigned|pod "lost" not running/,
        )
        expect(await run('exec', 'nowhere', '--', 'true')).toContain('pods "nowhere" not found')
        expect((await kubectl(program, ['exec', 'p', '--', 'no-such-program'])).code).toBe(127)
      })
    })
  }

  it('SYS-26 attaches to a terminal, and changes its size', async () => {
    const terminal = { rows: 21, columns: 81, input: { after: 'command prompt', text: 'hello\nexit\n' } }
    const attachment = kubectlOnTerminal(newest, 'attach -it two -c term', terminal)
    await expect.poll(async () => (await kubectl(newest, ['logs', 'two', '-c', 'term'])).stdout).toContain('got hello')
    const { stdout } = await kubectl(newest, ['logs', 'two', '-c', 'term'])
    expect(stdout).toMatch(/2[12] 8[12]/) // kubectl first sends a larger size, so that programs draw their screen again
    await server.call('DELETE', '/api/v1/namespaces/default/pods/two?gracePeriodSeconds=0')
    await attachment
  })

  it('SYS-26 rejects requests that it cannot serve with the Kubernetes status codes', async () => {
    const get = async (path: string, headers = {}) => {
      const { status, text: body } = await server.call(
        'GET',
        `/api/v1/namespaces/default/pods/${path}`,
        undefined,
        headers,
      )
      return [status, body.startsWith('{') ? JSON.parse(body).message : body]
    }
    expect(await get('p/exec?command=ls&stdout=true')).toEqual([400, 'Upgrade request required'])
    expect(await get('p/exec?command=ls')).toEqual([400, 'you must specify at least 1 of stdin, stdout, stderr'])
    expect(await get('lost/exec?command=ls&stdout=true')).toEqual([400, 'pod lost does not have a host assigned'])
    expect(await get('lost/log')).toEqual([204, ''])
    expect(await get('p/log?previous=true')).toEqual([400, 'previous terminated container "main" in pod "p" not found'])
    expect((await get('p/log?tailLines=-1'))[0]).toBe(422)
    expect((await get('p/log?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z'))[1]).toContain(
      'at most one of `sinceTime` or `sinceSeconds` may be specified',
    )
  })

  it('SYS-26 prints the requested part of a log', async () => {
    await kubectl(newest, ['wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/done', '--timeout=30s'])
    const logs = async (...args: string[]) => (await kubectl(newest, ['logs', ...args])).stdout
    expect(await logs('done')).toBe('one\ntwo\nthree\nfour')
    expect(await logs('done', '--tail=2')).toBe('three\nfour')
    expect(await logs('done', '--tail=0')).toBe('')
    expect(await logs('done', '--limit-bytes=5')).toBe('one\nt')
    expect(await logs('done', '--since-time=2099-01-01T00:00:00Z')).toBe('')
    expect(await logs('done', '--since=1h')).toBe('one\ntwo\nthree\nfour')
    expect(await logs('done', '--timestamps', '--tail=1')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z four$/)
    expect(await logs('p', '--all-containers', '--prefix')).toContain('[pod/p/main] out\n')
    expect((await logs('p')).split('\n').sort()).toEqual(['', 'err', 'out'])
  })

  it('SYS-26 follows a log until the container exits, and serves the log of the previous container', async () => {
    const bell = aPod('bell', [aContainer('main', 'for i in 1 2 3; do echo $i; sleep 0.5; done')], {
      restartPolicy: 'Never',
    })
    await server.call('POST', '/api/v1/namespaces/default/pods', bell)
    await kubectl(newest, ['wait', '--for=jsonpath={.status.startTime}', 'pod/bell', '--timeout=30s'])
    await expect
      .poll(async () => (await kubectl(oldest, ['logs', '-f', 'bell'])).stdout, { timeout: 30_000 })
      .toBe('1\n2\n3\n')
    await expect
      .poll(async () => (await kubectl(newest, ['logs', 'again'])).stdout, { timeout: 30_000, interval: 500 })
      .toBe('second\n')
    expect((await kubectl(newest, ['logs', 'again', '--previous'])).stdout).toBe('first\n')
  })

  it('SYS-26 serves WebSocket v4 to the official JavaScript client', async () => {
    const config = new KubeConfig()
    config.loadFromFile(server.kubeconfig)
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const output = Promise.all([text(stdout), text(stderr)])
    const status = await new Promise<{ status?: string; details?: unknown }>((resolve, reject) => {
      const command = ['sh', '-c', 'echo out; echo err >&2; exit 3']
      new Exec(config).exec('default', 'p', 'main', command, stdout, stderr, null, false, resolve).catch(reject)
    })
    expect(status).toMatchObject({ status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: '3' }] } })
    stdout.end()
    stderr.end()
    expect(await output).toEqual(['out\n', 'err\n'])
  })

  it('SYS-9 authorizes commands as create, and logs as get', async () => {
    const tokens = JSON.parse(await readFile(join(dataDir, 'pki', 'tokens.json'), 'utf8')) as unknown[]
    const token = JSON.stringify(tokens).match(/"token":"([^"]+)","user":"stowage-viewer"/)?.[1]
    const headers = { authorization: `Bearer ${token}` }
    const read = (path: string) => server.call('GET', `/api/v1/namespaces/default/pods/p/${path}`, undefined, headers)
    expect((await read('log')).status).toBe(200)
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const key = {
      'sec-websocket-key': randomBytes(16).toString('base64'),
      'sec-websocket-protocol': 'v5.channel.k8s.io',
    }
    const path = '/api/v1/namespaces/default/pods/p/exec?command=id&stdout=true'
    const status = await new Promise<number>((resolve, reject) => {
      const outgoing = request(server.url + path, { ca: server.ca, headers: { ...headers, ...upgrade, ...key } })
      outgoing.on('response', (response) => resolve(response.statusCode!))
      outgoing.on('upgrade', (_response, socket) => {
        socket.destroy()
        resolve(101)
      })
      outgoing.on('error', reject)
      outgoing.end()
    })
    expect(status).toBe(403)
  })

  it('SYS-9 the agent rejects every client except the API server', async () => {
    const { json } = await server.call('GET', '/api/v1/nodes/node-1')
    const port = json.status.daemonEndpoints.kubeletEndpoint.Port as number
    const call = async (tls: object) =>
      new Promise<number | string>((resolve) => {
        const outgoing = request(
          { host: '127.0.0.1', port, path: '/containerLogs/default/p/main', rejectUnauthorized: false, ...tls },
          (response) => resolve(response.statusCode!),
        )
        outgoing.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
        outgoing.end()
      })
    const pki = (file: string) => readFile(join(dataDir, 'pki', file), 'utf8')
    expect(await call({ cert: await pki('admin.crt'), key: await pki('admin.key') })).toBe(403)
    expect(await call({})).not.toBe(200)
  })

  it('SYS-26 reaches the containers of `stowage node`, whose serving certificate the server signs', async () => {
    const args = ['node', '--kubeconfig', server.kubeconfig, '--node-name', 'other', '--root-dir', join(dir, 'other')]
    node = await createDaemon({ name: 'node', args: [...args, '--run-commands'] })
    await node.start()
    await kubectl(newest, ['wait', '--for=condition=Ready', 'node/other', '--timeout=30s'])
    const pod = aPod('remote', [aContainer('main', `echo ready; while :; do sleep ${SLEEP_SECONDS}; done`)], {
      nodeName: 'other',
    })
    await server.call('POST', '/api/v1/namespaces/default/pods', pod)
    await kubectl(newest, ['wait', '--for=condition=Ready', 'pod/remote', '--timeout=30s'])
    await expect
      .poll(async () => (await kubectl(newest, ['exec', 'remote', '--', 'echo', 'hello'])).stdout, { timeout: 30_000 })
      .toBe('hello\n')
    expect((await kubectl(newest, ['logs', 'remote'])).stdout).toBe('ready\n')
  })

  it('SYS-26 keeps the log of a container complete when the server and its agent are killed', async () => {
    await server.kill()
    server = await startServer({ dataDir, nodes: 1, flags: [...flags, '--listen', new URL(server.url).host] })
    const readNumbers = async () => (await kubectl(newest, ['logs', 'count'])).stdout.trimEnd().split('\n').map(Number)
    await expect.poll(readNumbers, { timeout: 30_000 }).not.toEqual([0])
    const count = (await readNumbers()).length
    await expect.poll(async () => (await readNumbers()).length, { timeout: 30_000 }).toBeGreaterThan(count)
    const numbers = await readNumbers()
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
    const { stdout } = await kubectl(newest, ['exec', 'count', '--', 'echo', 'again'])
    expect(stdout).toBe('again\n')
  })
})
