// Runs real processes, which needs permission to mount. Each test has its own root directory.
import { access, chmod, mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { startSwapAttack } from '../../base/trees/swap-attack.fixture.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import { createHostDisk } from '../disk/host-disk.ts'
import { agentPaths } from '../paths.ts'
import type { PodCgroups } from './cgroup.ts'
import { type Containers, withoutNewContainers } from './containers.ts'
import { HOST_DEFAULTS } from './host-containers.fixture.ts'
import { createHostContainers } from './host-containers.ts'
import { readWholeLog } from './logs/read-whole-log.fixture.ts'
import type { VolumePath } from './volume-path.ts'

const LAUNCHES = 15 * Number(process.env.SCALE ?? 1)

const skipMessage = skipReason(await probeThisMachine(), ['mount'])

describe.skipIf(skipMessage)(`createHostContainers${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  const clock = systemClock()
  const run = createRun({ clock })
  const mounts = createMounts({ run })
  const disk = createHostDisk({ mounts, run })
  let root: string
  let volume: string
  let containers: Containers
  let changes: (() => void)[]

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'stowage-commands-')))
    volume = join(root, 'volume')
    await mkdir(volume)
    containers = await createContainers()
  })
  afterEach(async () => {
    while (!(await containers.stop(UID, 0))) await nextChange()
    for (const { target } of (await mounts.list()).toReversed()) {
      if (target.startsWith(`${root}/`)) await mounts.unmount(target)
    }
    await rm(root, { recursive: true, force: true })
  })

  const UID = '11111111-2222-3333-4444-555555555555'
  async function createContainers(options: { cgroups?: PodCgroups } = {}): Promise<Containers> {
    const hostContainers = await createHostContainers({
      ...HOST_DEFAULTS,
      ...options,
      paths: agentPaths(root),
      disk,
      clock,
      log: silentLog,
    })
    changes = []
    hostContainers.onChange(() => {
      for (const resolve of changes.splice(0)) resolve()
    })
    return hostContainers
  }
  const nextChange = () => new Promise<void>((resolve) => void changes.push(resolve))
  const volumes = (fields: Partial<VolumePath> = {}) =>
    new Map([['data', { path: volume, isDevice: false, readOnly: false, ...fields }]])
  const aPod = (command: string[], container: object = {}, spec: object = {}): Stored<Pod> => ({
    metadata: { name: 'p', namespace: 'default', uid: UID, resourceVersion: '1' },
    spec: {
      restartPolicy: 'Never',
      containers: [
        { name: 'main', command, volumeMounts: [{ name: 'data', mountPath: '/data/inner' }], ...container } as never,
      ],
      ...spec,
    },
  })
  /** Returns the final state of the container and its log. */
  async function runUntilEnded(pod: Stored<Pod>, paths = volumes()) {
    for (;;) {
      const change = nextChange()
      const [view] = (await containers.advance(pod, paths)).main
      if (view?.is !== 'running') {
        return { view, log: await readWholeLog(containers, pod, 'main') }
      }
      await change
    }
  }

  it('reports a pod as stopped only after its cgroup is removed, even if the cgroup lists no process', async () => {
    const removals = [false, false, true]
    const remove = async () => removals.shift()!
    containers = await createContainers({ cgroups: { create: async () => [], processes: async () => [], remove } })
    const results = []
    for (const _ of [1, 2, 3]) {
      const change = nextChange()
      const isStopped = await containers.stop(UID, 0)
      results.push(isStopped)
      if (!isStopped) await change
    }
    expect(results).toEqual([false, false, true])
    removals.push(true) // for the cleanup
  })

  it("resolves links of the machine in a mount path inside the container's root", async () => {
    await writeFile(join(volume, 'token'), 'secret')
    // On most machines, /var/run is a link to /run.
    const mountPath = '/var/run/stowage-test/serviceaccount'
    const volumeMounts = [{ name: 'data', mountPath, readOnly: true }]
    const { view, log } = await runUntilEnded(aPod(['cat', `${mountPath}/token`], { volumeMounts }))
    expect([view?.is === 'ended' && view.code, log]).toEqual([0, 'secret'])
    await expect(access('/run/stowage-test')).rejects.toThrow(/ENOENT/)
  })

  it('resolves ".." and links in mount paths and working directories inside the root of the container', async () => {
    const machine = join(root, 'machine')
    await mkdir(machine)
    await symlink(machine, join(volume, 'out'))
    await writeFile(join(volume, 'file'), 'x')
    const volumeMounts = [
      { name: 'data', mountPath: '/data' },
      { name: 'data', mountPath: '/a/../../../stowage-test/up' },
      { name: 'data', mountPath: '/data/out/inner' },
      { name: 'data', mountPath: '/data/out/inner-file', subPath: 'file' },
    ]
    const script = `pwd; cat /stowage-test/up/file ${machine}/inner/file ${machine}/inner-file`
    const pod = aPod(['sh', '-c', script], { volumeMounts, workingDir: '/var/run/../run/stowage-test/work' })
    const { view, log } = await runUntilEnded(pod)
    expect([view?.is === 'ended' && view.code, log]).toEqual([0, '/run/stowage-test/work\nxxx'])
    expect(await disk.list(machine)).toEqual([])
    for (const path of ['/stowage-test', '/run/stowage-test']) expect(await disk.kindOf(path)).toBeUndefined()
  })

  it('creates no directory on the machine while a pod replaces a part of a mount path with a link', async () => {
    const attack = await startSwapAttack()
    try {
      const machineBefore = await attack.readHost()
      const volumeMounts = ['/data', '/data/d/x', '/data/d/y/z'].map((mountPath) => ({ name: 'data', mountPath }))
      await attack.repeat(LAUNCHES, async () => {
        await runUntilEnded(aPod(['true'], { volumeMounts, workingDir: '/data/d/w' }), volumes({ path: attack.volume }))
        await containers.removeRecords(UID)
      })
      expect(await attack.readHost()).toEqual(machineBefore)
    } finally {
      await attack.dispose()
    }
  })

  it('creates no cgroup on the machine for a mount path in /sys', async () => {
    const mountPath = '/sys/fs/cgroup/stowage-test'
    const { view, log } = await runUntilEnded(aPod(['true'], { volumeMounts: [{ name: 'data', mountPath }] }))
    expect(view).toMatchObject({ is: 'ended', code: 126 })
    expect(log).toContain(`cannot use ${mountPath} in the container: it does not exist in /proc or /sys`)
    expect(await disk.kindOf(mountPath)).toBeUndefined()
  })

  it('SYS-7 mounts the volume at its mount path and discards files outside it', async () => {
    const script = 'echo hello > /data/inner/greeting; echo discarded > /stowage-discarded; pwd; exit 3'
    const { view, log } = await runUntilEnded(aPod(['sh', '-c', script], { workingDir: '/data' }))
    expect(view).toMatchObject({ is: 'ended', code: 3, reason: 'Error', restarts: 0 })
    expect(log).toBe('/data\n')
    expect(await readFile(join(volume, 'greeting'), 'utf8')).toBe('hello\n')
    expect(await disk.kindOf('/stowage-discarded')).toBeUndefined()
    expect(await disk.kindOf('/data/inner')).toBeUndefined()
    expect(await disk.mountsUnder(root)).toEqual([])
  })

  it('SYS-7 rejects writes to a read-only mount', async () => {
    const pod = aPod(['sh', '-c', 'echo x > /data/inner/f'], {
      volumeMounts: [{ name: 'data', mountPath: '/data/inner', readOnly: true }],
    })
    const { view, log } = await runUntilEnded(pod)
    expect(view).toMatchObject({ is: 'ended', code: expect.any(Number) })
    expect(log).toMatch(/read-only/i)
    expect(await disk.list(volume)).toEqual([])
  })

  it('SYS-7 mounts a subPath and rejects one that is a link', async () => {
    const withSubPath = (subPath: string) => ({ volumeMounts: [{ name: 'data', mountPath: '/part', subPath }] })
    await runUntilEnded(aPod(['sh', '-c', 'echo x > /part/f'], withSubPath('a/b')))
    expect(await readFile(join(volume, 'a', 'b', 'f'), 'utf8')).toBe('x\n')
    await symlink('/etc', join(volume, 'link'))
    await expect(disk.bindSubPath(volume, 'link', join(root, 'never'))).rejects.toThrow(/link/)
  })

  it('SYS-7 mounts a path of the machine, unless a part of it is replaced with a link after the check', async () => {
    const [machine, outside] = [join(root, 'machine'), join(root, 'outside')]
    await mkdir(join(machine, 'd'), { recursive: true })
    await mkdir(outside)
    await writeFile(join(machine, 'd', 'f'), 'x')
    const hostPath = volumes({ path: join(machine, 'd'), isHostPath: true })
    expect((await runUntilEnded(aPod(['cat', '/data/inner/f']), hostPath)).log).toBe('x')
    await containers.stop(UID, 0)
    for (const mountPoint of await disk.mountsUnder(agentPaths(root).subPaths(UID))) await disk.unmount(mountPoint)
    await containers.removeRecords(UID)
    await rename(join(machine, 'd'), join(machine, 'hidden'))
    await symlink(outside, join(machine, 'd'))
    const volumeMounts = [{ name: 'data', mountPath: '/d', subPath: 'new' }]
    for (const [container, reason] of [
      [{}, 'RunContainerError'],
      [{ volumeMounts }, 'CreateContainerConfigError'],
    ] as const) {
      expect((await containers.advance(aPod(['true'], container), hostPath)).main[0]).toMatchObject({
        reason,
        message: expect.stringMatching(/"d", which is not|link "d"/),
      })
    }
    expect(await disk.list(outside)).toEqual([])
  })

  it('passes the environment and expands $(NAME)', async () => {
    const env = [
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'GREETING', value: 'hello $(POD)' },
    ]
    const { log } = await runUntilEnded(aPod(['sh', '-c', 'echo "$GREETING, $(POD), \\$$(POD)"'], { env }))
    expect(log).toBe('hello p, p, $(POD)\n')
  })

  it('tracks a running command and its exit code after a restart of the agent', async () => {
    const pod = aPod(['sh', '-c', 'while [ ! -e /data/inner/go ]; do sleep 0.05; done; exit 7'])
    await containers.advance(pod, volumes())
    containers = await createContainers()
    expect((await containers.advance(pod, volumes())).main[0]).toMatchObject({ is: 'running', restarts: 0 })
    await writeFile(join(volume, 'go'), '')
    expect((await runUntilEnded(pod)).view).toMatchObject({ is: 'ended', code: 7 })
  })

  it('kills the process tree of a command that ignores SIGTERM after the grace period', async () => {
    const script = 'trap "" TERM; (trap "" TERM; sleep 1000) & touch /data/inner/up; while :; do sleep 1; done'
    const pod = aPod(['sh', '-c', script])
    await containers.advance(pod, volumes())
    while ((await disk.kindOf(join(volume, 'up'))) === undefined) await clock.sleep(10)
    expect(await containers.stop(UID, 1)).toBe(false)
    while (!(await containers.stop(UID, 1))) await nextChange()
    expect((await containers.finalView(pod)).main[0]).toMatchObject({ is: 'ended', code: 137 })
  })

  it('stops a running command with its pod after commands are disabled', async () => {
    const pod = aPod(['sh', '-c', 'trap "exit 9" TERM; touch /data/inner/up; while :; do sleep 0.05; done'])
    await containers.advance(pod, volumes())
    while ((await disk.kindOf(join(volume, 'up'))) === undefined) await clock.sleep(10)
    containers = withoutNewContainers(await createContainers())
    const otherPod = aPod(['touch', '/data/inner/never'], { name: 'other' })
    expect((await containers.advance(otherPod, volumes())).main[0]).toEqual({ is: 'running' })
    expect(await containers.stop(UID, 30)).toBe(false)
    while (!(await containers.stop(UID, 30))) await nextChange()
    expect((await containers.finalView(pod)).main[0]).toMatchObject({ is: 'ended', code: 9 })
    await containers.removeRecords(UID)
    expect(await disk.list(agentPaths(root).pod(UID))).toEqual([])
    expect(await disk.list(volume)).toEqual(['up'])
  })

  it('reports the exit code of a command that exits on SIGTERM', async () => {
    const script = 'trap "exit 9" TERM; touch /data/inner/up; while :; do sleep 0.05; done'
    const pod = aPod(['sh', '-c', script])
    await containers.advance(pod, volumes())
    while ((await disk.kindOf(join(volume, 'up'))) === undefined) await clock.sleep(10)
    while (!(await containers.stop(UID, 30))) await nextChange()
    expect((await containers.finalView(pod)).main[0]).toMatchObject({ is: 'ended', code: 9 })
  })

  it('runs init containers in order before the main containers', async () => {
    const aContainer = (name: string) => ({
      name,
      command: ['sh', '-c', `echo ${name} >> /d/order`],
      volumeMounts: [{ name: 'data', mountPath: '/d' }],
    })
    const pod = aPod(
      [],
      {},
      { initContainers: [aContainer('one'), aContainer('two')], containers: [aContainer('main')] },
    )
    for (;;) {
      const change = nextChange()
      const { main } = await containers.advance(pod, volumes())
      if (main[0]?.is === 'ended') break
      await change
    }
    expect(await readFile(join(volume, 'order'), 'utf8')).toBe('one\ntwo\nmain\n')
  })

  it('restarts a crashing command immediately, then after a delay, and reports its last exit code', async () => {
    const pod = aPod(['sh', '-c', 'echo output; exit 3'], {}, { restartPolicy: 'Always' })
    const { view } = await runUntilEnded(pod)
    expect(view).toMatchObject({
      is: 'waiting',
      reason: 'CrashLoopBackOff',
      restarts: 1,
      message: `back-off 10s restarting failed container=main pod=p_default(${UID})`,
      last: { code: 3, reason: 'Error', endedMs: expect.any(Number) },
    })
  })

  it('retains the logs of the current and the previous run only', async () => {
    const container = agentPaths(root).container(UID, 'main')
    for (const run of ['0', '1', '2']) {
      await mkdir(join(container, run), { recursive: true })
      await writeFile(join(container, run, 'started'), '1000\n')
      await writeFile(join(container, run, 'exit'), '3\n')
    }
    await containers.advance(aPod(['true'], {}, { restartPolicy: 'Always' }), volumes())
    expect(await disk.list(container)).toEqual(['2', '3'])
  })

  it('reports a command that cannot mount as ended, so that its pod can be deleted', async () => {
    const bin = join(root, 'bin')
    await mkdir(bin)
    await writeFile(join(bin, 'unshare'), '#!/bin/sh\necho "unshare failed: Operation not permitted" >&2\nexit 1\n')
    await chmod(join(bin, 'unshare'), 0o755)
    const path = process.env.PATH
    process.env.PATH = `${bin}:${path}`
    try {
      const { view, log } = await runUntilEnded(aPod(['true']))
      expect(view).toMatchObject({ is: 'ended', reason: 'ContainerStatusUnknown' })
      expect(log).toContain('Operation not permitted')
      expect(await containers.stop(UID, 30)).toBe(true)
    } finally {
      process.env.PATH = path
    }
  })

  it('rejects a volume mounted at /', async () => {
    const pod = aPod(['true'], { volumeMounts: [{ name: 'data', mountPath: '//.' }] })
    expect((await containers.advance(pod, volumes())).main[0]).toMatchObject({
      is: 'waiting',
      reason: 'CreateContainerConfigError',
      message: expect.stringContaining('volumeMount "data"'),
    })
  })

  it('names an unsupported field in the container status', async () => {
    const fileKeyRef = { volumeName: 'data', path: 'f', key: 'k' }
    const pod = aPod(['true'], { env: [{ name: 'X', valueFrom: { fileKeyRef } }] })
    expect((await containers.advance(pod, volumes())).main[0]).toMatchObject({
      is: 'waiting',
      reason: 'CreateContainerConfigError',
      message: expect.stringContaining('env X'),
    })
  })
})
