// Runs real processes in a container, which needs permission to mount.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import { createHostDisk } from '../disk/host-disk.ts'
import { agentPaths } from '../paths.ts'
import type { Containers } from './containers.ts'
import type { ContainerProcess } from './exec-in-container.ts'
import { HOST_DEFAULTS } from './host-containers.fixture.ts'
import { createHostContainers } from './host-containers.ts'

const skipMessage = skipReason(await probeThisMachine(), ['mount'])

describe.skipIf(skipMessage)(`exec in a running container${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  const clock = systemClock()
  const run = createRun({ clock })
  const disk = createHostDisk({ mounts: createMounts({ run }), run })
  const UID = '22222222-2222-3333-4444-555555555555'
  let root: string
  let containers: Containers
  let pod: Stored<Pod>
  let replacementLog: string

  /** Creates programs that would run instead of those of the machine if the container's PATH were searched. */
  async function createReplacements(directory: string, names: readonly string[], file: string): Promise<void> {
    await mkdir(directory)
    for (const name of names)
      await writeFile(join(directory, name), `#!/bin/sh\necho ${name} >> ${file}\nexit 99\n`, { mode: 0o755 })
  }

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'stowage-exec-')))
    const volume = join(root, 'volume')
    await mkdir(volume)
    await writeFile(join(volume, 'greeting'), 'hello\n')
    replacementLog = join(volume, 'replaced')
    await createReplacements(join(volume, 'bin'), ['script', 'nsenter', 'unshare', 'stty', 'tty'], replacementLog)
    await createReplacements(join(volume, 'tools'), ['setpriv'], '/data/replaced')
    containers = await createHostContainers({ ...HOST_DEFAULTS, paths: agentPaths(root), disk, clock, log: silentLog })
    pod = {
      metadata: { name: 'p', namespace: 'default', uid: UID, resourceVersion: '1' },
      spec: {
        restartPolicy: 'Never',
        securityContext: { supplementalGroups: [4242] }, // setpriv sets them
        containers: [
          {
            name: 'main',
            command: ['sleep', '1000'],
            workingDir: '/data',
            env: [
              { name: 'COLOR', value: "it's blue" },
              // The first directory exists outside of the container, the second in it.
              { name: 'PATH', value: `${volume}/bin:/data/tools:/usr/bin:/bin` },
            ],
            volumeMounts: [{ name: 'data', mountPath: '/data' }],
          } as never,
        ],
      },
    }
    await containers.advance(pod, new Map([['data', { path: volume, isDevice: false, readOnly: false }]]))
  })
  afterAll(async () => {
    while (!(await containers.stop(UID, 0))) await clock.sleep(20)
    await rm(root, { recursive: true, force: true })
  })

  const exec = (script: string, options: { stdin?: boolean; tty?: boolean } = {}) =>
    containers.exec(pod, 'main', { command: ['sh', '-c', script], ...options })
  const waitForOutcome = async (process: ContainerProcess) => {
    const [out, err, code] = await Promise.all([
      text(process.stdout),
      process.stderr ? text(process.stderr) : '',
      process.exitCode,
    ])
    return { out, err, code }
  }

  it('SYS-26 runs with the volumes, the working directory and the environment of the container', async () => {
    const process = await exec('pwd; cat greeting; echo "$COLOR" >&2; exit 7')
    expect(await waitForOutcome(process)).toEqual({ out: '/data\nhello\n', err: "it's blue\n", code: 7 })
  })

  it('SYS-26 passes stdin to the command until it ends', async () => {
    const process = await exec('cat; echo end', { stdin: true })
    process.stdin!.end('input\n')
    expect(await waitForOutcome(process)).toEqual({ out: 'input\nend\n', err: '', code: 0 })
  })

  it('SYS-26 gives the command a terminal with echo, and changes its size', async () => {
    const process = await exec('stty size; read line; stty size; echo "got $line $COLOR"; exit 3', {
      stdin: true,
      tty: true,
    })
    let output = ''
    process.stdout.setEncoding('utf8')
    process.stdout.on('data', (chunk: string) => {
      output += chunk
    })
    await expect.poll(() => output).toContain('0 0\r\n')
    await process.resize({ columns: 91, rows: 31 })
    process.stdin!.write('ping\n')
    expect(await process.exitCode).toBe(3)
    await expect.poll(() => output).toContain("got ping it's blue\r\n")
    expect(output).toContain('ping\r\n')
    expect(output).toContain('31 91')
  })

  for (const tty of [false, true]) {
    it(`SYS-26 stops all processes of a command ${tty ? 'with' : 'without'} a terminal`, async () => {
      const marker = `100${tty ? 1 : 0}.25`
      const process = await exec(`sh -mc 'sleep ${marker} & wait' & echo up; wait`, { tty, stdin: true })
      await new Promise((resolve) => process.stdout.once('data', resolve))
      const listProcesses = async () =>
        (await run('sh', ['-c', `grep -lF ${marker} /proc/[0-9]*/cmdline 2>/dev/null || true`])).stdout
          .split('\n')
          .filter(Boolean)
      await expect.poll(async () => (await listProcesses()).length).toBeGreaterThan(2)
      process.kill('SIGKILL')
      await process.exitCode
      await expect.poll(async () => (await listProcesses()).length).toBeLessThanOrEqual(1) // grep itself
    })
  }

  it('SYS-26 reports a signal as 128 plus its number', async () => {
    expect(await waitForOutcome(await exec('kill -TERM $$'))).toMatchObject({ code: 143 })
  })

  it("SYS-26 uses the machine's tools, not those in the container's PATH", async () => {
    expect(await waitForOutcome(await exec('id -G'))).toMatchObject({ code: 0 })
    const process = await exec('echo "$PATH"', { tty: true })
    await process.resize({ columns: 91, rows: 31 })
    expect((await waitForOutcome(process)).out).toContain('/bin:/data/tools:')
    expect(existsSync(replacementLog)).toBe(false)
  })

  it('SYS-26 rejects a container that runs no command', async () => {
    await expect(containers.exec(pod, 'other', { command: ['true'] })).rejects.toThrow(/runs no command/)
  })
})
