// Tests `stowage up --driver`: a driver that it starts, a driver at a socket, drivers on two nodes, and drivers that do not work.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createFakeControl } from '../src/csi/fake/control-client.ts'
import { isRunning, type ProcessIdentity } from '../src/host/process-identity.ts'
import { buildProgram } from './helpers/build-program.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { startFakeDriver } from './helpers/fake-driver.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const STORAGE = '/apis/storage.k8s.io/v1'
const CORE = '/api/v1/namespaces/default'
const DRIVER = 'fake.stowage.example'

let dir: string
let server: RunningServer | undefined
let fakeDriver: string
beforeAll(async () => {
  fakeDriver = `${process.execPath} ${join(dirname(await realpath(await buildProgram())), 'fake-driver.js')}`
})
beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-drv-')))
})
afterEach(async () => {
  await server?.stop().catch(() => {})
  server = undefined
  await rm(dir, { recursive: true, force: true })
})

const start = async (nodes: number, ...drivers: string[]) => {
  server = await startServer({
    dataDir: join(dir, 'data'),
    nodes,
    flags: ['--no-console', '--pool-size', '1Gi', ...drivers.flatMap((driver) => ['--driver', driver])],
  })
  return server
}
const fakeDriverCommand = (...flags: string[]) =>
  [fakeDriver, '--endpoint unix://{socket} --node-id {node} --state {dir}/state', ...flags].join(' ')
const driverDir = (node: string) => join(dir, 'data', 'nodes', node, 'drivers', 'fake-driver')
const readProcess = async (node: string): Promise<ProcessIdentity | undefined> =>
  JSON.parse(await readFile(join(driverDir(node), 'process.json'), 'utf8').catch(() => '{}'))
const read = async (path: string) => (await server!.call('GET', path)).json

async function runPod(name: string): Promise<{ spec: { nodeName: string } }> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
  await server!.call('POST', `${CORE}/persistentvolumeclaims`, { metadata: { name }, spec })
  await server!.call('POST', `${CORE}/pods`, {
    metadata: { name },
    spec: {
      containers: [{ name: 'app', image: 'app', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
    },
  })
  await pollUntil(async () => (await read(`${CORE}/pods/${name}`)).status?.phase === 'Running')
  return read(`${CORE}/pods/${name}`)
}

async function pollUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}
/** Waits until the server's output contains the text or matches the pattern. */
const waitForLog = (text: string | RegExp) =>
  pollUntil(() => (typeof text === 'string' ? server!.log().includes(text) : text.test(server!.log())))

describe('a driver that `up` starts', () => {
  it('SYS-6 provides the volume of the first pod, is restarted after a kill, and ends with the server', async () => {
    await start(1, fakeDriverCommand())
    const { spec } = await runPod('first')
    expect(spec.nodeName).toBe('node-1')
    const claim = await read(`${CORE}/persistentvolumeclaims/first`)
    expect(claim.spec.storageClassName).toBe(DRIVER)
    const csiDriver = await read(`${STORAGE}/csidrivers/${DRIVER}`)
    expect(csiDriver.spec).toMatchObject({ attachRequired: true, storageCapacity: true, fsGroupPolicy: 'File' })
    const classes = (await read(`${STORAGE}/storageclasses`)).items as {
      metadata: { name: string; annotations: object }
    }[]
    const isDefault = ({ metadata }: (typeof classes)[0]) =>
      JSON.stringify(metadata.annotations ?? {}).includes('is-default-class":"true')
    expect(classes.filter(isDefault).map(({ metadata }) => metadata.name)).toEqual([DRIVER])

    const firstProcess = (await readProcess('node-1'))!
    process.kill(firstProcess.pid, 'SIGKILL')
    await waitForLog('was ended by SIGKILL')
    await runPod('second')
    const secondProcess = (await readProcess('node-1'))!
    expect(secondProcess.pid).not.toBe(firstProcess.pid)
    await server!.stop()
    expect([isRunning(firstProcess), isRunning(secondProcess)]).toEqual([false, false])
    expect(existsSync(join(driverDir('node-1'), 'process.json'))).toBe(false)
  })

  it('SYS-6 is replaced by the next server if the first one was killed, and the new driver keeps the volumes', async () => {
    await start(1, fakeDriverCommand())
    await runPod('kept')
    const orphanedProcess = (await readProcess('node-1'))!
    await server!.kill()
    expect(isRunning(orphanedProcess)).toBe(true)
    await start(1, fakeDriverCommand('--max-volumes 7')) // the next server starts the driver with another flag
    await pollUntil(async () => JSON.stringify(await read(`${STORAGE}/csinodes/node-1`)).includes('"count":7'))
    expect(isRunning(orphanedProcess)).toBe(false)
    await server!.call('DELETE', `${CORE}/pods/kept?gracePeriodSeconds=0`)
    await server!.call('DELETE', `${CORE}/persistentvolumeclaims/kept`)
    await pollUntil(async () => (await read('/api/v1/persistentvolumes')).items.length === 0)
  })

  it('SYS-6 runs once per node with {node}, and provisions where the pod runs', async () => {
    await start(2, fakeDriverCommand('--topology example.com/node={node}'))
    const listNodeIds = async () =>
      ((await read(`${STORAGE}/csinodes`)).items as { spec: { drivers: { name: string; nodeID: string }[] } }[]).map(
        ({ spec }) => spec.drivers.find(({ name }) => name === DRIVER)?.nodeID,
      )
    await pollUntil(async () => (await listNodeIds()).join() === 'node-1,node-2')
    for (const node of ['node-1', 'node-2']) {
      const labels = (await read(`/api/v1/nodes/${node}`)).metadata.labels
      expect(labels['example.com/node']).toBe(node)
      const isFirstNode = node === 'node-1'
      await server!.call('PATCH', `/api/v1/nodes/node-2`, { spec: { unschedulable: isFirstNode } }, MERGE)
      await server!.call('PATCH', `/api/v1/nodes/node-1`, { spec: { unschedulable: !isFirstNode } }, MERGE)
      const pod = await runPod(`on-${node}`)
      expect(pod.spec.nodeName).toBe(node)
      const state = JSON.parse(await readFile(join(driverDir(node), 'data', 'state'), 'utf8'))
      expect(Object.keys(state.volumes)).toHaveLength(1)
    }
  })
})

const MERGE = { 'content-type': 'application/merge-patch+json' }

describe('a driver at a socket', () => {
  it('SYS-6 is awaited while it is missing, and registered again when it is replaced by another version', async () => {
    const socket = join(dir, 'csi.sock')
    await start(1, `unix://${socket}`)
    await waitForLog(`there is no socket at ${socket}`)
    const startDriver = (...flags: string[]) =>
      createDaemon({
        name: 'fake driver',
        program: fakeDriver.split(' ')[1]!,
        args: ['--endpoint', socket, '--control', join(dir, 'control.sock'), ...flags],
      })
    const daemons: Daemon[] = [await startDriver('--without', 'EXPAND_VOLUME', '--without', 'PUBLISH_UNPUBLISH_VOLUME')]
    await daemons[0]!.start()
    await runPod('first')
    expect((await read(`${STORAGE}/storageclasses/${DRIVER}`)).allowVolumeExpansion).toBe(false)
    await daemons[0]!.stop()
    daemons.push(await startDriver('--without', 'PUBLISH_UNPUBLISH_VOLUME', '--driver-version', '2'))
    await daemons[1]!.start()
    await pollUntil(async () => (await read(`${STORAGE}/storageclasses/${DRIVER}`)).allowVolumeExpansion)
    await runPod('second')
    expect(Object.keys((await createFakeControl(join(dir, 'control.sock')).inspect()).state.volumes)).toHaveLength(1)
    await daemons[1]!.stop()
  })

  it('SYS-6 can also be specified with --driver-socket', async () => {
    const driver = await startFakeDriver()
    server = await startServer({
      dataDir: join(dir, 'data'),
      nodes: 1,
      flags: ['--no-console', '--driver-socket', driver.endpoint],
    })
    await runPod('first')
    await driver.remove()
  })
})

describe('drivers that do not work', () => {
  const PROGRAMS = {
    'crashes-at-start': [
      '#!/bin/sh\necho "cannot open /dev/sdx" >&2; exit 7',
      /exited with code 7.*cannot open \/dev\/sdx/,
    ],
    'is-no-driver': [
      `#!${process.execPath}\nrequire('net').createServer((s) => s.end('hello')).listen(process.env.CSI_ENDPOINT.slice(7))`,
      /does not speak gRPC/,
    ],
    'does-not-respond': [
      `#!${process.execPath}\nrequire('net').createServer(() => {}).listen(process.env.CSI_ENDPOINT.slice(7))`,
      /does not respond to GetPluginInfo/,
    ],
    'has-a-long-name': [
      `#!/bin/sh\nexec FAKE --endpoint $CSI_ENDPOINT --name ${'x'.repeat(64)}`,
      /64 characters; CSI allows 63/,
    ],
    'has-no-node-id': ['#!/bin/sh\nexec FAKE --endpoint $CSI_ENDPOINT --name a.example --node-id ""', /empty node_id/],
    'exits-later': [
      '#!/bin/sh\nFAKE --endpoint $CSI_ENDPOINT --name b.example & read x < EMPTY_FILE; exit 9',
      /exited with code 9/,
    ],
  } as const

  it('SYS-6 are each logged with the reason, while a working driver serves pods', async () => {
    const programs: string[] = []
    const emptyFile = join(dir, 'empty')
    for (const [name, [text]] of Object.entries(PROGRAMS)) {
      const program = join(dir, name)
      await writeFile(program, text.replaceAll('FAKE', fakeDriver).replaceAll('EMPTY_FILE', emptyFile))
      await chmod(program, 0o755)
      programs.push(program)
    }
    await writeFile(emptyFile, '') // `read` fails at the end of the file, so the driver exits soon after its start
    await start(1, fakeDriverCommand(), ...programs, '/nonexistent/missing.sock', 'no-such-program --endpoint {socket}')
    for (const [name, [, reason]] of Object.entries(PROGRAMS)) {
      const isNamed = (line: string) => line.includes(name) && reason.test(line)
      await pollUntil(() => server!.log().split('\n').some(isNamed))
    }
    await waitForLog('there is no socket at /nonexistent/missing.sock')
    await waitForLog(/exited with code 127.*no-such-program/)
    await runPod('works')
    await server!.stop()
    expect(server!.log()).not.toContain('cannot run a driver')
    const driverDirs = await readdir(join(dir, 'data', 'nodes', 'node-1', 'drivers'))
    expect(driverDirs).toHaveLength(Object.keys(PROGRAMS).length + 2)
  })
})
