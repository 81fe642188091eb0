// Runs a server without nodes, and the local driver and `stowage node` in their own processes. The node joins with a token, and
// `stowage df` shows the usage that its agent measures.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const DRIVER = 'local.csi.stowage.dev'
const NODE = 'worker-1'
const STORAGE = '/apis/storage.k8s.io/v1'
const PODS = '/api/v1/namespaces/default/pods'
const POLLS_MAX = 600
const TIMEOUT_MS = 180_000

describe('stowage df with nodes in other processes', { timeout: TIMEOUT_MS }, () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  const daemons: Daemon[] = []

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-df-nodes-')))
    leftovers = await findLeftoversBelow(dir)
    await mkdir(join(dir, 'pool'))
    const socket = join(dir, 'csi.sock')
    const driverFlags = ['--node-id', NODE, '--pool', join(dir, 'pool'), '--pool-size', '1Gi']
    await startDaemon('driver', ['driver', '--endpoint', `unix://${socket}`, ...driverFlags])
    server = await startServer({ dataDir: join(dir, 'data'), flags: ['--driver-socket', socket] })
    const tokenArgs = ['token', 'create', '--node', NODE, '--kubeconfig', server.kubeconfig, '-o', 'json']
    const { token, caCertHash } = JSON.parse((await runStowage(...tokenArgs)).stdout)
    const joinFlags = ['--join', server.url, '--token', token, '--ca-cert-hash', caCertHash]
    const nodeFlags = ['--node-name', NODE, '--root-dir', join(dir, 'agent'), '--driver-socket', socket]
    await startDaemon('node', ['node', ...nodeFlags, ...joinFlags])
    await post(`${STORAGE}/storageclasses`, {
      metadata: { name: 'worker' },
      provisioner: DRIVER,
      volumeBindingMode: 'WaitForFirstConsumer',
    })
  }, TIMEOUT_MS)
  afterAll(async () => {
    for (const daemon of daemons) await daemon.stop()
    await server?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function startDaemon(name: string, args: readonly string[]): Promise<void> {
    const isReady = ({ stdout }: { stdout: string }) => stdout.includes('is ready')
    const daemon = await createDaemon({ name, args, ...(name === 'node' ? { isReady } : {}) })
    daemons.push(daemon)
    await daemon.start()
  }

  async function post(path: string, body: object): Promise<void> {
    const { status, text } = await server.call('POST', path, body)
    expect(status, `POST ${path}: ${text}`).toBe(201)
  }

  /** Runs `stowage df` until its only claim fulfils the condition. */
  async function waitForClaim(isExpected: (claim: Record<string, unknown>) => boolean) {
    for (let attempt = 0; ; attempt++) {
      const { stdout, stderr, code } = await runStowage('df', '--kubeconfig', server.kubeconfig, '-o', 'json')
      expect(code, stderr).toBe(0)
      const [claim] = JSON.parse(stdout).items
      if (isExpected(claim)) return claim
      if (attempt === POLLS_MAX) throw new Error(`timed out; the last output is ${stdout}`)
    }
  }

  it('PLUS-16 shows the usage that a node reports, until no pod has the volume mounted', async () => {
    await post('/api/v1/namespaces/default/persistentvolumeclaims', {
      metadata: { name: 'orders' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'worker',
        resources: { requests: { storage: '320Mi' } },
      },
    })
    await post(PODS, {
      metadata: { name: 'shop' },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'orders' } }],
      },
    })
    const claim = await waitForClaim(({ usedBytes }) => usedBytes !== undefined)
    expect(claim).toMatchObject({ claim: 'orders', node: NODE })
    expect(claim.freeBytes).toBeGreaterThan(0)
    const { status } = await server.call('DELETE', `${PODS}/shop`)
    expect(status).toBe(200)
    const unmounted = await waitForClaim(({ usedBytes }) => usedBytes === undefined)
    expect(unmounted.unknownReason).toBe('no pod has the volume mounted')
  })
})
