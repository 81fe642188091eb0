// Fills a volume on a loop device with dd while it grows by itself, in `stowage up`: the file system is never full before the
// claim has its maximum, and no size exceeds the maximum.
//   AUTO_GROW_SECONDS=600 npx vitest run test/auto-grow.test.ts
// A volume is measured when a pod mounts it, and then every one to two minutes: the first pod fills it beyond the threshold,
// and the second one continues.
import { mkdtemp, realpath, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { bytesOf } from './whole-crash/workload.ts'

const seconds = Number(process.env.AUTO_GROW_SECONDS ?? 5)
const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const CLAIM = '/api/v1/namespaces/default/persistentvolumeclaims/logs'
const PODS = '/api/v1/namespaces/default/pods'
const POLL_INTERVAL_MS = 1_000
const MI = 1024 ** 2

describe.skipIf(skipMessage)(`automatic growth${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-auto-grow-')))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({
      dataDir: join(dir, 'data'),
      nodes: 1,
      flags: ['--run-commands', '--no-console', '--pool-size', '4Gi', '--log-level', 'warn'],
    })
  }, 120_000)
  afterAll(async () => {
    await server?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function post(path: string, body: object): Promise<void> {
    const { status, text } = await server.call('POST', path, body)
    expect(status, `POST ${path}: ${text}`).toBe(201)
  }

  it(
    'expands a volume that dd fills before it is full, and never beyond its maximum size',
    async () => {
      // dd writes at most 1 MiB/s: half of the first 400 MiB last longer than the time between two measurements.
      const max = 800 * MI + Math.floor(seconds * 1.2) * MI
      await post('/apis/storage.k8s.io/v1/storageclasses', {
        metadata: { name: 'growing' },
        provisioner: 'local.csi.stowage.dev',
        allowVolumeExpansion: true,
        volumeBindingMode: 'WaitForFirstConsumer',
      })
      await post('/api/v1/namespaces/default/persistentvolumeclaims', {
        metadata: {
          name: 'logs',
          annotations: { 'stowage.dev/auto-grow': `threshold=50%,step=40%,max=${max / MI}Mi,cooldown=10s` },
        },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'growing',
          resources: { requests: { storage: '400Mi' } },
        },
      })
      const createPod = (name: string, script: string) =>
        post(PODS, {
          metadata: { name },
          spec: {
            restartPolicy: 'Never',
            terminationGracePeriodSeconds: 0,
            containers: [
              {
                name: 'main',
                image: 'none',
                command: ['sh', '-c', script],
                volumeMounts: [{ name: 'data', mountPath: '/data' }],
              },
            ],
            volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'logs' } }],
          },
        })
      const getPod = async (name: string) => (await server.call('GET', `${PODS}/${name}`)).json
      await createPod('filler', 'dd if=/dev/zero of=/data/first bs=1M count=210 conv=fsync status=none')
      while ((await getPod('filler')).status?.phase !== 'Succeeded') await pause(POLL_INTERVAL_MS)
      await server.call('DELETE', `${PODS}/filler`)
      await createPod(
        'writer',
        'while dd if=/dev/zero bs=1M count=1 conv=fsync status=none >> /data/log; do sleep 1; done',
      )
      const sizes: number[] = []
      let mostUsed = 0
      let usedBytes = 0
      let startMs = Number.POSITIVE_INFINITY
      while (sizes.length < 2 || performance.now() < startMs + seconds * 1_000) {
        await pause(POLL_INTERVAL_MS)
        const pod = await getPod('writer')
        const claim = (await server.call('GET', CLAIM)).json
        for (const size of [claim.spec.resources.requests.storage, claim.status?.capacity?.storage])
          expect(bytesOf(size), `a size of the claim: ${size}`).toBeLessThanOrEqual(max)
        if (['Failed', 'Succeeded'].includes(pod.status?.phase)) throw new Error('the volume is full: dd has failed')
        if (pod.status?.phase !== 'Running') continue
        startMs = Math.min(startMs, performance.now())
        const podDir = join(dir, 'data', 'nodes', 'node-1', 'agent', 'pods', pod.metadata.uid)
        const { blocks, bsize, bavail } = await statfs(
          join(podDir, 'volumes', 'kubernetes.io~csi', claim.spec.volumeName, 'mount'),
        )
        if (sizes.at(-1) !== blocks * bsize) sizes.push(blocks * bsize)
        mostUsed = Math.max(mostUsed, 1 - bavail / blocks)
        usedBytes = (blocks - bavail) * bsize
      }
      console.log(
        `${seconds} s of dd: ${Math.round(usedBytes / MI)} MiB used, sizes ${sizes.map((size) => Math.round(size / MI)).join(', ')} MiB, ` +
          `maximum ${max / MI} MiB, at most ${Math.round(mostUsed * 100)} % used`,
      )
      expect(mostUsed).toBeLessThan(1)
      expect((await server.call('DELETE', `${PODS}/writer`)).status).toBe(200)
    },
    (seconds * 2 + 300) * 1_000,
  )
})
