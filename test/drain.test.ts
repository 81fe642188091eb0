// Drains a node with real processes: `stowage node drain` moves pods with attached volumes from the agent of one node to that of
// another, and no volume is mounted on both at once.
//   DRAINED_VOLUMES=200 npx vitest run test/drain.test.ts
import { mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { listObjects, readMountedNodes } from './lost-nodes/checks.ts'
import { killPodProcesses } from './lost-nodes/cluster.ts'
import { SHARED_DRIVER, type SharedDriver, startSharedDriver } from './lost-nodes/shared-driver.ts'

const DEFAULT_VOLUMES = 6
const volumeCount = Number(process.env.DRAINED_VOLUMES ?? DEFAULT_VOLUMES)
const [DRAINED, OTHER] = ['node-a', 'node-b'] as const
const POLL_INTERVAL_MS = 200
const POLLS_MAX = 3_000 // after this many, a wait has failed
const skipMessage = skipReason(await probeThisMachine(), ['mount'])

describe.skipIf(skipMessage)(`stowage node drain${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let hostLeftovers: HostLeftovers
  let shared: SharedDriver
  let server: RunningServer
  const agents: Daemon[] = []
  const dirOf = (node: string) => join(dir, node)

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-drain-')))
    hostLeftovers = await findLeftoversBelow(dir)
    shared = await startSharedDriver(dir, [DRAINED, OTHER])
    server = await startServer({
      dataDir: join(dir, 'data'),
      flags: ['--log-level', 'warn', '--no-console', '--driver-socket', shared.controllerSocket],
    })
    for (const node of [DRAINED, OTHER]) {
      await shared.startNode(node)
      agents.push(await startAgent(node))
    }
    await post('/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: 'network' }, provisioner: SHARED_DRIVER })
  }, 300_000)
  afterAll(async () => {
    await server?.stop()
    for (const agent of agents) await agent.stop()
    for (const node of [DRAINED, OTHER]) await killPodProcesses(dirOf(node))
    await shared?.stop()
    await hostLeftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  }, 300_000)

  async function startAgent(node: string): Promise<Daemon> {
    await mkdir(dirOf(node))
    const tokenArgs = ['token', 'create', '--node', node, '--kubeconfig', server.kubeconfig, '-o', 'json']
    const { token, caCertHash } = JSON.parse((await runStowage(...tokenArgs)).stdout)
    const agent = await createDaemon({
      name: `agent ${node}`,
      isReady: ({ stdout }) => stdout.includes('is ready'),
      args: [
        ...['node', '--node-name', node, '--root-dir', join(dirOf(node), 'agent'), '--run-commands'],
        ...['--driver-socket', shared.socketOf(node), '--max-pods', String(volumeCount + 10)],
        ...['--join', server.url, '--token', token, '--ca-cert-hash', caCertHash],
        ...['--stream-endpoint', '127.0.0.1:0', '--log-level', 'info'],
      ],
    })
    await agent.start()
    return agent
  }

  async function post(path: string, body: object): Promise<void> {
    const { status, text } = await server.call('POST', path, body)
    expect(status, `POST ${path}: ${text}`).toBe(201)
  }

  const runNodeCommand = (...args: string[]) => runStowage('node', ...args, '--kubeconfig', server.kubeconfig)
  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runNodeCommand(...args)
    expect(code, `${stdout}${stderr}`).toBe(0)
    return stdout
  }

  /** Each pod appends its uid to a file of its volume. */
  const buildStatefulSet = () => ({
    metadata: { name: 'web' },
    spec: {
      replicas: volumeCount,
      podManagementPolicy: 'Parallel',
      serviceName: 'web',
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: 'main',
              image: 'none',
              command: ['sh', '-c', 'echo $POD_UID >> /data/log; exec sleep 100000'],
              env: [
                { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
                { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
                { name: 'NODE_DIR', value: `${dir}/$(NODE_NAME)` },
              ],
              volumeMounts: [{ name: 'data', mountPath: '/data' }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: {
            accessModes: ['ReadWriteOnce'],
            storageClassName: 'network',
            resources: { requests: { storage: '100Mi' } },
          },
        },
      ],
    },
  })

  async function waitUntil(condition: () => Promise<boolean>, description: string): Promise<void> {
    for (let polls = 0; !(await condition()); polls++) {
      if (polls === POLLS_MAX) {
        const logs = agents.map(({ name, log }) => `--- ${name}\n${log().slice(-3_000)}`)
        throw new Error(`timed out waiting until ${description}\n${server.log().slice(-3_000)}\n${logs.join('\n')}`)
      }
      await pause(POLL_INTERVAL_MS)
    }
  }
  const readPods = () => listObjects(server, 'pods')
  const areAllRunningOn = async (node: string) => {
    const running = (await readPods()).filter(
      ({ metadata, spec, status }) =>
        spec.nodeName === node && status?.phase === 'Running' && !metadata.deletionTimestamp,
    )
    return running.length === volumeCount
  }
  /** Returns the pods that wrote to each volume, in the order of their writes. */
  async function readWriters(): Promise<string[][]> {
    const volumes = await readdir(shared.volumesDir)
    const logs = volumes.map((volume) => readFile(join(shared.volumesDir, volume, 'log'), 'utf8').catch(() => ''))
    return (await Promise.all(logs)).map((text) => text.split('\n').filter((line) => line !== ''))
  }

  it(
    `moves ${volumeCount} pods with attached volumes to another node, and continues after an interruption`,
    async () => {
      await succeed('cordon', OTHER)
      await post('/apis/apps/v1/namespaces/default/statefulsets', buildStatefulSet())
      await waitUntil(() => areAllRunningOn(DRAINED), `all pods run on ${DRAINED}`)
      await succeed('uncordon', OTHER)
      const uids = (await readPods()).map(({ metadata }) => metadata.uid)
      expect(await succeed('drain', DRAINED, '--dry-run')).toContain('moves')
      expect(await areAllRunningOn(DRAINED)).toBe(true)

      const doublyMounted: string[] = []
      let isWatching = true
      const watching = (async () => {
        while (isWatching) {
          for (const [volume, nodes] of await readMountedNodes({ shared, dirOf }))
            if (nodes.size > 1) doublyMounted.push(`${volume} on ${[...nodes].join(' and ')}`)
          await pause(POLL_INTERVAL_MS)
        }
      })()
      const startMs = performance.now()
      const interrupted = await runNodeCommand('drain', DRAINED, '--timeout', '0s')
      expect(interrupted.stdout).toContain('Run the command again to continue.')
      await succeed('drain', DRAINED)
      const drainedSeconds = (performance.now() - startMs) / 1_000
      const attachedTo = (await listObjects(server, 'attachments')).map(({ spec }) => spec.nodeName)
      expect(attachedTo).not.toContain(DRAINED)
      expect((await readPods()).filter(({ spec }) => spec.nodeName === DRAINED)).toEqual([])
      await waitUntil(() => areAllRunningOn(OTHER), `all pods run on ${OTHER}`)
      const movedSeconds = (performance.now() - startMs) / 1_000
      isWatching = false
      await watching

      expect(doublyMounted).toEqual([])
      const newUids = (await readPods()).map(({ metadata }) => metadata.uid)
      await waitUntil(async () => (await readWriters()).flat().length >= 2 * volumeCount, 'each new pod has written')
      const writers = await readWriters()
      expect(writers.map(([first]) => first).toSorted()).toEqual(uids.toSorted())
      expect(writers.map(([, second]) => second).toSorted()).toEqual(newUids.toSorted())
      const left = (await hostLeftovers.list()).filter((line) => line.includes(dirOf(DRAINED)))
      expect(left).toEqual([])
      expect(agents.flatMap(({ unexpectedExits }) => unexpectedExits)).toEqual([])
      console.log(
        `${volumeCount} volumes: ${DRAINED} was drained in ${drainedSeconds.toFixed(1)} s, ` +
          `and all pods ran on ${OTHER} after ${movedSeconds.toFixed(1)} s`,
      )
      await succeed('uncordon', DRAINED)
      expect((await server.call('DELETE', '/apis/apps/v1/namespaces/default/statefulsets/web')).status).toBe(200)
      await waitUntil(async () => (await readPods()).length === 0, 'all pods are deleted')
      expect(await hostLeftovers.list()).toEqual([])
    },
    120_000 + volumeCount * 4_000,
  )
})
