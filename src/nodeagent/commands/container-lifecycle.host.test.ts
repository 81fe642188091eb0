// Runs real processes, which needs permission to mount: probes, hooks, sidecars, images and termination messages.
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { createMounts } from '../../host/mounts.ts'
import { createRun } from '../../host/run.ts'
import type { NodeDisk } from '../disk/disk.ts'
import { createHostDisk } from '../disk/host-disk.ts'
import { agentPaths } from '../paths.ts'
import type { PodView } from '../pods/pod-status.ts'
import type { Containers } from './containers.ts'
import { HOST_DEFAULTS } from './host-containers.fixture.ts'
import { createHostContainers } from './host-containers.ts'
import { readWholeLog } from './logs/read-whole-log.fixture.ts'

const skipMessage = skipReason(await probeThisMachine(), ['mount'])
const UID = '11111111-2222-3333-4444-666666666666'

describe.skipIf(skipMessage)(`createHostContainers${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  const clock = systemClock()
  const run = createRun({ clock })
  const disk = createHostDisk({ mounts: createMounts({ run }), run })
  /** Called before each write of the agent. After it has returned true, this agent's operations have no effect. */
  let onWrite: () => boolean = () => false
  let root: string
  let volume: string
  let containers: Containers
  let stopAgent = new AbortController()
  const changes: (() => void)[] = []
  let events: string[] = []

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'stowage-lifecycle-')))
    volume = join(root, 'volume')
    events = []
    await mkdir(volume)
    await startAgent()
  })
  afterEach(async () => {
    while (!(await containers.stop(UID, 0))) await nextChange()
    stopAgent.abort()
    for (const path of await disk.mountsUnder(root)) await disk.unmount(path)
    await rm(root, { recursive: true, force: true })
  })

  async function startAgent(): Promise<void> {
    stopAgent.abort()
    stopAgent = new AbortController()
    const imageCommands = [{ image: 'greeter', command: 'echo hello' }]
    const paths = agentPaths(root)
    const agentDisk = killableDisk(disk, () => onWrite())
    containers = await createHostContainers({
      ...HOST_DEFAULTS,
      paths,
      disk: agentDisk,
      clock,
      log: silentLog,
      imageCommands,
    })
    containers.onChange(() => {
      for (const resolve of changes.splice(0)) resolve()
    })
    containers.onEvent((_pod, { reason, message }) => void events.push(`${reason}: ${message}`))
    void containers.run?.(stopAgent.signal)
  }
  const nextChange = () => new Promise<void>((resolve) => void changes.push(resolve))
  const aContainer = (name: string, script: string, fields: object = {}) => ({
    name,
    image: 'busybox',
    ...(script ? { command: ['sh', '-c', script] } : {}),
    volumeMounts: [{ name: 'data', mountPath: '/d' }],
    ...fields,
  })
  const aPod = (spec: object): Stored<Pod> => ({
    metadata: { name: 'p', namespace: 'default', uid: UID, resourceVersion: '1' },
    spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 5, ...spec } as never,
  })
  /** Advances the pod until the condition holds. */
  async function advanceUntil(pod: Stored<Pod>, condition: (view: PodView) => boolean): Promise<PodView> {
    const volumes = new Map([['data', { path: volume, isDevice: false, readOnly: false }]])
    for (;;) {
      const change = nextChange()
      const view = await containers.advance(pod, volumes)
      if (condition(view)) return view
      await change
    }
  }
  const hasEnded = ({ main }: PodView) => main.every(({ is }) => is === 'ended')
  const waitForFile = async (name: string) => {
    while ((await disk.kindOf(join(volume, name))) === undefined) await clock.sleep(5)
  }
  const readVolume = (name: string) => readFile(join(volume, name), 'utf8')

  it('starts a sidecar before the main container, and stops it last, even after the pod object is deleted', async () => {
    const life = (name: string) =>
      `trap "echo ${name} ended >> /d/order; exit 0" TERM; echo ${name} >> /d/order; touch /d/${name}; while :; do sleep 0.05; done`
    const startupProbe = { exec: { command: ['test', '-e', '/d/two'] }, periodSeconds: 1 }
    const sidecar = { restartPolicy: 'Always' }
    const pod = aPod({
      initContainers: [
        aContainer('one', life('one'), sidecar),
        aContainer('two', life('two'), { ...sidecar, startupProbe }),
      ],
      containers: [aContainer('main', life('main'))],
    })
    await advanceUntil(pod, ({ main }) => main[0]?.is === 'running')
    await waitForFile('main')
    while (!(await containers.stop(UID, 30))) await nextChange()
    const order = ['one', 'two', 'main', 'main ended', 'two ended', 'one ended', '']
    expect((await readVolume('order')).split('\n')).toEqual(order)
    expect((await containers.finalView(pod)).init).toMatchObject([{ code: 0 }, { code: 0 }])
  })

  it('stops a sidecar when the main container has completed', async () => {
    const sidecar = aContainer('side', 'trap "exit 9" TERM; while :; do sleep 0.05; done', { restartPolicy: 'Always' })
    const pod = aPod({ initContainers: [sidecar], containers: [aContainer('main', 'exit 0')] })
    const view = await advanceUntil(pod, ({ init }) => init[0]?.is === 'ended')
    expect(view).toMatchObject({ init: [{ code: 9 }], main: [{ code: 0, reason: 'Completed' }] })
  })

  it('restarts a container whose liveness probe fails, even if the agent is killed before the container has exited', async () => {
    const livenessProbe = { exec: { command: ['test', '!', '-e', '/d/dead'] }, periodSeconds: 1, failureThreshold: 1 }
    const script = 'echo run >> /d/runs; trap "" TERM; until [ -e /d/end ]; do sleep 0.05; done; exit 0'
    const pod = aPod({ restartPolicy: 'OnFailure', containers: [aContainer('main', script, { livenessProbe })] })
    await advanceUntil(pod, ({ main }) => main[0]?.is === 'running')
    await writeFile(join(volume, 'dead'), '')
    await advanceUntil(pod, () => events.some((event) => event.startsWith('Killing')))
    expect(events).toContain('Killing: Container main failed liveness probe, will be restarted')
    await rm(join(volume, 'dead'))
    await startAgent()
    await writeFile(join(volume, 'end'), '') // the command exits with 0, which alone is no reason for a restart
    await advanceUntil(pod, ({ main }) => (main[0]?.restarts ?? 0) === 1)
    await expect.poll(() => readVolume('runs')).toBe('run\nrun\n') // the restarted command may not have written its line yet
  })

  it('reports readiness, and runs postStart and preStop', async () => {
    const container = aContainer('main', 'trap "echo term >> /d/end; exit 0" TERM; while :; do sleep 0.05; done', {
      readinessProbe: { exec: { command: ['cat', '/d/ready'] }, periodSeconds: 1 },
      lifecycle: {
        postStart: { exec: { command: ['sh', '-c', 'echo "post $HOME_OF" > /d/post'] } },
        preStop: { exec: { command: ['sh', '-c', 'echo pre >> /d/end'] } },
      },
      env: [{ name: 'HOME_OF', value: 'p' }],
    })
    const pod = aPod({ containers: [container] })
    const [view] = (await advanceUntil(pod, ({ main }) => main[0]?.is === 'running')).main
    expect(view).toMatchObject({ isStarted: true, isReady: false })
    expect(await readVolume('post')).toBe('post p\n')
    await expect.poll(() => events.join('\n')).toContain('Unhealthy: Readiness probe failed: cat: /d/ready')
    await writeFile(join(volume, 'ready'), '')
    await advanceUntil(pod, ({ main }) => main[0]?.is === 'running' && main[0].isReady === true)
    while (!(await containers.stop(UID, 30))) await nextChange()
    expect(await readVolume('end')).toBe('pre\nterm\n')
  })

  it('ends a container whose postStart hook fails', async () => {
    const lifecycle = { postStart: { exec: { command: ['sh', '-c', 'echo broken; exit 1'] } } }
    const pod = aPod({
      containers: [aContainer('main', 'trap "exit 4" TERM; while :; do sleep 0.05; done', { lifecycle })],
    })
    expect((await advanceUntil(pod, hasEnded)).main[0]).toMatchObject({ code: 4, reason: 'Error' })
    expect(events).toContain('FailedPostStartHook: PostStartHook failed: broken\n')
  })

  it('reports the termination message, or the end of the log after an error', async () => {
    const pod = aPod({
      containers: [
        aContainer('file', 'echo done > /dev/termination-log'),
        aContainer('path', 'echo there > /tmp/message; exit 1', { terminationMessagePath: '/tmp/message' }),
        aContainer('log', 'echo first; echo last; exit 2', { terminationMessagePolicy: 'FallbackToLogsOnError' }),
      ],
    })
    await advanceUntil(pod, hasEnded)
    await expect
      .poll(async () => (await containers.finalView(pod)).main)
      .toMatchObject([
        { code: 0, message: 'done\n' },
        { code: 1, message: 'there\n' },
        { code: 2, message: 'first\nlast\n' },
      ])
  })

  it('reports a program that does not exist as StartError', async () => {
    const pod = aPod({ containers: [{ name: 'main', command: ['no-such-program'] }] })
    expect((await advanceUntil(pod, hasEnded)).main[0]).toMatchObject({
      code: 127,
      reason: 'StartError',
      message: 'exec: "no-such-program": executable file not found in $PATH',
    })
  })

  it('kills the processes that a command leaves behind when it exits', async () => {
    const pod = aPod({ containers: [aContainer('main', '(while :; do touch /d/alive; sleep 0.01; done) & sleep 0.1')] })
    await advanceUntil(pod, hasEnded)
    await rm(join(volume, 'alive'), { force: true })
    await advanceUntil(aPod({ containers: [aContainer('next', 'sleep 0.2')] }), hasEnded)
    expect(await disk.kindOf(join(volume, 'alive'))).toBeUndefined()
  })

  it('runs the command that stands in for an image, and rejects an image without one', async () => {
    const pod = aPod({
      containers: [
        aContainer('greeter', '', {
          image: 'reg:5000/greeter:1',
          args: ['$(WHO)'],
          env: [{ name: 'WHO', value: 'you' }],
        }),
        aContainer('shell', 'let i=20+3; echo -n "$i $(grep -c . /etc/group)"'),
        aContainer('mount', '', {
          image: 'agnhost:2',
          args: ['mounttest', '--fs_type=/tmp', '--new_file_0666=/d/new', '--file_mode=/d/new', '--file_owner=/d'],
        }),
        aContainer('unknown', '', { image: 'app:1' }),
      ],
    })
    const view = await advanceUntil(pod, ({ main }) => main.slice(0, 3).every(({ is }) => is === 'ended'))
    expect(view.main[3]).toMatchObject({
      reason: 'ErrImageNeverPull',
      message: expect.stringContaining("--image-command 'app=COMMAND'"),
    })
    await expect.poll(() => readWholeLog(containers, pod, 'greeter')).toBe('hello you\n')
    await expect.poll(() => readWholeLog(containers, pod, 'shell')).toBe('23 2')
    const lines = [
      'mount type of "/tmp": tmpfs',
      'content of file "/d/new": mount-tester new file',
      '',
      'mode of file "/d/new": -rw-rw-rw-',
      'owner UID of "/d": 0',
      'owner GID of "/d": 0',
      '',
    ]
    await expect.poll(() => readWholeLog(containers, pod, 'mount')).toBe(lines.join('\n'))
  })

  it('SYS-26 mounts a subPath with the value of a variable, and rejects one that leads out of the volume', async () => {
    const mountAt = (mount: object) => ({
      env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      volumeMounts: [{ name: 'data', mountPath: '/d', ...mount }],
    })
    await mkdir(join(volume, 'real'))
    await run('ln', ['-s', 'real', join(volume, 'inside')])
    await run('ln', ['-s', '/etc', join(volume, 'outside')])
    await run('ln', ['-s', '../', join(volume, 'above')])
    const pod = aPod({
      containers: [
        aContainer('expr', 'touch /d/f', mountAt({ subPathExpr: 'pods/$(POD)' })),
        aContainer('inside', 'touch /d/f', mountAt({ subPath: 'inside' })),
        aContainer('outside', 'true', mountAt({ subPath: 'outside' })),
        aContainer('above', 'true', mountAt({ subPath: 'above' })),
        aContainer('missing', 'true', mountAt({ subPathExpr: '$(NONE)' })),
        aContainer('both', 'true', mountAt({ mountPropagation: 'Bidirectional' })),
      ],
    })
    const { main } = await advanceUntil(pod, (view) => view.main.slice(0, 2).every(({ is }) => is === 'ended'))
    expect(await disk.list(join(volume, 'pods', 'p'))).toEqual(['f'])
    expect(await disk.list(join(volume, 'real'))).toEqual(['f'])
    for (const [index, message] of [
      [2, 'failed to prepare subPath for volumeMount "data" of container "outside"'],
      [3, 'failed to prepare subPath for volumeMount "data" of container "above"'],
      [4, 'missing value for "NONE"'],
      [5, 'mountPropagation Bidirectional is not supported'],
    ] as const) {
      expect(main[index]).toMatchObject({
        reason: 'CreateContainerConfigError',
        message: expect.stringContaining(message),
      })
    }
  })

  it('completes init container, sidecar and main container once each after the agent is killed at any write', async () => {
    const sidecar = aContainer('side', 'trap "exit 0" TERM; echo side >> /d/log; while :; do sleep 0.05; done', {
      restartPolicy: 'Always',
      startupProbe: { exec: { command: ['grep', 'side', '/d/log'] }, periodSeconds: 1 },
    })
    const pod = aPod({
      restartPolicy: 'OnFailure',
      initContainers: [aContainer('init', 'echo init >> /d/log'), sidecar],
      containers: [aContainer('main', 'echo main >> /d/log')],
    })
    let isKilled = true
    for (let killAt = 1; isKilled; killAt += 3) {
      isKilled = false
      const killed = new Promise<void>((resolve) => {
        let writes = 0
        onWrite = () => {
          isKilled ||= ++writes === killAt
          if (isKilled) resolve()
          return isKilled
        }
      })
      await startAgent()
      await Promise.race([killed, advanceUntil(pod, isDone)])
      onWrite = () => false
      await startAgent()
      const view = await advanceUntil(pod, isDone)
      expect(view, `killed at write ${killAt}`).toMatchObject({ init: [{ code: 0 }, { code: 0 }], main: [{ code: 0 }] })
      expect(await readVolume('log'), `killed at write ${killAt}`).toBe('init\nside\nmain\n')
      while (!(await containers.stop(UID, 0))) await nextChange()
      await containers.removeRecords(UID)
      await rm(join(volume, 'log'))
    }
  })
  const isDone = ({ init, main }: PodView) => [...init, ...main].every(({ is }) => is === 'ended')
})

/** Returns a disk whose operations never settle once `isKilled` has returned true for a write. */
function killableDisk(disk: NodeDisk, isKilled: () => boolean): NodeDisk {
  const writes = new Set(['makeDirectory', 'writeText', 'writeFile', 'bindSubPath', 'removeTree'])
  let hasEnded = false
  return new Proxy(disk, {
    get(target, key) {
      const operation = Reflect.get(target, key) as (...args: unknown[]) => Promise<unknown>
      return async (...args: unknown[]) => {
        if (!hasEnded && writes.has(String(key))) hasEnded = isKilled()
        if (hasEnded) return new Promise(() => {})
        return operation.apply(target, args)
      }
    },
  })
}
