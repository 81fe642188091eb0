// Tests pods that run commands as a user runs them: `stowage up --run-commands`, kubectl, and one SIGKILL of the server. At the
// end no process, mount or directory may be left.
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const program = (await findKubectls()).at(-1)
const skipMessage =
  (program || process.env.CI ? undefined : 'kubectl is not installed') ??
  skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])

describe.skipIf(skipMessage)(`pods that run commands${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let server: RunningServer
  let kubectl: Kubectl
  let hostLeftovers: HostLeftovers

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-pods-commands-')))
    hostLeftovers = await findLeftoversBelow(dir)
    await start()
  })
  afterAll(async () => {
    await server?.stop()
    await hostLeftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function start(): Promise<void> {
    const flags = ['--run-commands', '--pool-size', '1Gi', '--image-command', 'shop/web=sh /config/start.sh']
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })
  }
  const apply = (...items: object[]) =>
    kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) })

  it('SYS-26 run init containers, sidecars, probes and hooks on volumes of every kind, and survive SIGKILL of the server', async () => {
    const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '320Mi' } } }
    const data = { 'start.sh': 'echo "$1 $COLOR"; exec sleep 1000', color: 'red' }
    const mounts = (...names: string[]) => names.map((name) => ({ name, mountPath: `/${name}` }))
    await apply(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data },
      { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' }, spec: claimSpec },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', labels: { app: 'web' } },
        spec: {
          terminationGracePeriodSeconds: 2,
          initContainers: [
            {
              name: 'fill',
              image: 'busybox',
              command: ['sh', '-c', 'echo filled > /data/f'],
              volumeMounts: mounts('data'),
            },
            {
              name: 'side',
              image: 'agnhost',
              restartPolicy: 'Always',
              startupProbe: { exec: { command: ['test', '-e', '/data/f'] }, periodSeconds: 1 },
              volumeMounts: mounts('data'),
            },
          ],
          containers: [
            {
              name: 'web',
              image: 'registry.example.com/shop/web:2',
              args: ['started'],
              env: [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'web', key: 'color' } } }],
              readinessProbe: { exec: { command: ['cat', '/scratch/ready'] }, periodSeconds: 1 },
              lifecycle: { postStart: { exec: { command: ['sh', '-c', 'touch /scratch/ready'] } } },
              volumeMounts: mounts('data', 'config', 'scratch', 'fields'),
            },
          ],
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
            { name: 'config', configMap: { name: 'web' } },
            { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
            {
              name: 'fields',
              downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
            },
          ],
        },
      },
    )
    await kubectl.out('wait pod/web --for=condition=Ready --timeout=60s')
    const before = await kubectl.json('get pod web')
    await server.kill()
    await start()
    await kubectl.out('wait pod/web --for=condition=Ready --timeout=60s')
    const { status } = await kubectl.json('get pod web')
    expect(status.containerStatuses[0]).toMatchObject({
      containerID: before.status.containerStatuses[0].containerID,
      restartCount: 0,
      ready: true,
      started: true,
    })
    expect(status.initContainerStatuses).toMatchObject([
      { name: 'fill', ready: true, state: { terminated: { reason: 'Completed' } } },
      { name: 'side', ready: true, started: true, restartCount: 0 },
    ])
    expect(await kubectl.out('logs web -c web')).toBe('started red\n')
    const script = 'cat /data/f /fields/labels; readlink /config/color; stat -f -c %T /scratch'
    expect(await kubectl.out(['exec', 'web', '-c', 'web', '--', 'sh', '-c', script])).toBe(
      'filled\napp="web"..data/color\ntmpfs\n',
    )
  })

  it('SYS-26 report the images, probes and fields that the node agent does not support', async () => {
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'refused' },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          { name: 'image', image: 'shop/unknown:1' },
          { name: 'probe', image: 'busybox', livenessProbe: { grpc: { port: 1 } } },
          { name: 'limits', image: 'pause', resources: { limits: { memory: '1Mi' } } },
        ],
      },
    })
    await kubectl.out('wait pod/refused --for=jsonpath={.status.containerStatuses[2].ready}=true --timeout=60s')
    const { containerStatuses } = (await kubectl.json('get pod refused')).status
    expect(containerStatuses[0].state.waiting).toMatchObject({
      reason: 'ErrImageNeverPull',
      message: expect.stringContaining("--image-command 'shop/unknown=COMMAND'"),
    })
    expect(containerStatuses[1].state.waiting).toMatchObject({
      reason: 'CreateContainerConfigError',
      message: 'livenessProbe.grpc of container probe is not supported by this node agent; use exec',
    })
    const readEvents = () =>
      kubectl.out('get events --field-selector involvedObject.name=refused,reason=UnsupportedFields')
    await expect.poll(readEvents, { timeout: 20_000 }).toContain('spec.containers[limits].resources.limits')
  })

  it('SYS-26 leave nothing after they are deleted', async () => {
    await kubectl.out('delete pod,pvc --all --timeout=60s')
    const pods = join(dir, 'data', 'nodes', 'node-1', 'agent', 'pods')
    await expect.poll(() => readdir(pods), { timeout: 20_000 }).toEqual([])
    await expect.poll(async () => (await kubectl.json('get pv')).items.length, { timeout: 20_000 }).toBe(0)
    await expect.poll(() => hostLeftovers.list(), { timeout: 20_000 }).toEqual([])
  })
})
