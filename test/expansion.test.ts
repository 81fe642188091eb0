// Tests expansion with `stowage up` and one node, while a pod's volume is written and verified.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, open, realpath, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const GI = 1024 ** 3
const MERGE = { 'content-type': 'application/merge-patch+json' }

describe.skipIf(skipMessage)(`expansion${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-expansion-')))
    await mkdir(join(dir, 'data'))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '5Gi'] })
  })
  afterAll(async () => {
    await server?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  const getClaim = async (name = 'orders') => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const requestSize = async (storage: string, name = 'orders') => {
    const { status } = await server.call(
      'PATCH',
      `${CLAIMS}/${name}`,
      { spec: { resources: { requests: { storage } } } },
      MERGE,
    )
    expect(status).toBe(200)
  }
  /** Waits for an event, because events are recorded after the change that they report. */
  const waitForEvent = (reason: string, message: RegExp) =>
    pollUntil(async () => {
      const { json } = await server.call('GET', '/api/v1/events')
      return json.items.some((event: any) => event.reason === reason && message.test(event.message))
    })
  const waitForCapacity = (size: string, name?: string) =>
    pollUntil(async () => (await getClaim(name)).status.capacity.storage === size)

  const createClaim = (name: string, storage: string, volumeMode = 'Filesystem') =>
    server.call('POST', CLAIMS, {
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage } } },
    })

  /** Starts a pod that uses the claim and returns its volume's path. */
  async function startPod(name: string, isDevice = false): Promise<string> {
    const mounts = isDevice
      ? { volumeDevices: [{ name, devicePath: '/dev/raw' }] }
      : { volumeMounts: [{ name, mountPath: '/data' }] }
    await server.call('POST', PODS, {
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'none', ...mounts }],
        volumes: [{ name, persistentVolumeClaim: { claimName: name } }],
      },
    })
    await pollUntil(async () => (await server.call('GET', `${PODS}/${name}`)).json.status?.phase === 'Running')
    const pod = (await server.call('GET', `${PODS}/${name}`)).json
    const { volumeName } = (await getClaim(name)).spec
    const root = join(dir, 'data', 'nodes', pod.spec.nodeName, 'agent', 'pods', pod.metadata.uid)
    return isDevice
      ? join(root, 'volumeDevices', 'kubernetes.io~csi', volumeName)
      : join(root, 'volumes', 'kubernetes.io~csi', volumeName, 'mount')
  }

  it('REX-1 REX-2 REX-7 PLUS-12 expands a volume in use, cancels an impossible size, and then expands to a smaller one', async () => {
    await createClaim('orders', '1Gi')
    const path = await startPod('orders')
    const io = await startVerifiedIo(join(path, 'log'))
    let verifiedBlocks = 0
    try {
      await io.waitForBlocks(100)
      expect((await statfs(path)).blocks * (await statfs(path)).bsize).toBeLessThan(1.05 * GI)

      await requestSize('2Gi')
      await waitForCapacity('2Gi')
      const { bsize, blocks } = await statfs(path)
      expect(blocks * bsize).toBeGreaterThan(1.8 * GI)
      await promisify(execFile)('fallocate', ['-l', '1200M', join(path, 'larger-than-before')])
      expect((await stat(join(path, 'larger-than-before'))).size).toBe(1200 * 1024 ** 2)
      const expandedStatus = (await getClaim()).status
      expect(expandedStatus.allocatedResourceStatuses).toBeUndefined()
      expect(expandedStatus.conditions ?? []).toEqual([])
      await waitForEvent('FileSystemResizeSuccessful', /succeeded/)
      await io.waitForBlocks(100)

      await requestSize('500Gi')
      await pollUntil(
        async () => (await getClaim()).status.allocatedResourceStatuses?.storage === 'ControllerResizeInfeasible',
      )
      await waitForEvent('VolumeResizeFailed', /needs 498Gi more, but only .* short/)
      await requestSize('2Gi')
      await pollUntil(async () => (await getClaim()).status.allocatedResourceStatuses === undefined)
      expect((await getClaim()).status).toMatchObject({ capacity: { storage: '2Gi' } })
      expect((await getClaim()).status.conditions ?? []).toEqual([])
      await waitForEvent('StorageRequestLowered', /from 500Gi to 2Gi/)

      await requestSize('3Gi')
      await waitForCapacity('3Gi')
      await io.waitForBlocks(100)
    } finally {
      verifiedBlocks = await io.stop()
    }
    expect(verifiedBlocks).toBeGreaterThanOrEqual(300)
    const finalClaim = await getClaim()
    expect(finalClaim.spec.allocatedResources.storage, 'the mark stays').toBe('500Gi')
  }, 120_000)

  it('REX-1 expands a block device in use and keeps its data', async () => {
    await createClaim('raw', '64Mi', 'Block')
    const device = await open(await startPod('raw', true), 'r+')
    try {
      await device.write('bytes', 0)
      await device.sync()
      const beyondOldEnd = 100 * 1024 ** 2
      expect((await device.read(Buffer.alloc(4), 0, 4, beyondOldEnd)).bytesRead).toBe(0)
      await requestSize('128Mi', 'raw')
      await waitForCapacity('128Mi', 'raw')
      expect((await device.read(Buffer.alloc(4), 0, 4, beyondOldEnd)).bytesRead).toBe(4)
      expect((await device.read(Buffer.alloc(5), 0, 5, 0)).buffer.toString()).toBe('bytes')
    } finally {
      await device.close()
    }
  }, 60_000)

  it('REX-1 expands the file system of an unused volume when the next pod uses it', async () => {
    await createClaim('quiet', '320Mi')
    await startPod('quiet')
    await server.call('DELETE', `${PODS}/quiet`)
    await pollUntil(async () => (await server.call('GET', `${PODS}/quiet`)).status === 404)
    await requestSize('400Mi', 'quiet')
    await pollUntil(
      async () => (await getClaim('quiet')).status.allocatedResourceStatuses?.storage === 'NodeResizePending',
    )
    const pendingStatus = (await getClaim('quiet')).status
    expect(pendingStatus.conditions.map(({ type }: any) => type).sort()).toEqual([
      'FileSystemResizePending',
      'Resizing',
    ])
    expect(pendingStatus.capacity.storage).toBe('320Mi')
    const path = await startPod('quiet')
    await waitForCapacity('400Mi', 'quiet')
    const { bsize, blocks } = await statfs(path)
    expect(blocks * bsize).toBeGreaterThan(320 * 1024 ** 2)
    expect((await getClaim('quiet')).status.allocatedResourceStatuses).toBeUndefined()
  }, 60_000)

  it('SYS-7 leaves nothing on the machine after everything is deleted', async () => {
    const countObjects = async (path: string) => (await server.call('GET', path)).json.items.length
    for (const path of [PODS, CLAIMS]) {
      await server.call('DELETE', path)
      await pollUntil(async () => (await countObjects(path)) === 0)
    }
    await pollUntil(async () => (await countObjects('/api/v1/persistentvolumes')) === 0)
    expect(await leftovers.list()).toEqual([])
  }, 60_000)
})

const BLOCK_BYTES = 64 * 1024

/** Continuously writes blocks whose content depends on their position, and fails if a block that is read back differs. */
async function startVerifiedIo(path: string) {
  const file = await open(path, 'w+')
  let blocksWritten = 0
  let isStopped = false
  const blockAt = (index: number): Buffer => {
    const seed = createHash('sha256').update(`block ${index}`).digest()
    return Buffer.alloc(BLOCK_BYTES, seed)
  }
  async function verify(index: number): Promise<void> {
    const buffer = Buffer.alloc(BLOCK_BYTES)
    await file.read(buffer, 0, BLOCK_BYTES, index * BLOCK_BYTES)
    if (!buffer.equals(blockAt(index))) throw new Error(`block ${index} differs from what was written`)
  }
  const writerRun = (async () => {
    while (!isStopped) {
      await file.write(blockAt(blocksWritten), 0, BLOCK_BYTES, blocksWritten * BLOCK_BYTES)
      await file.datasync()
      await verify(blocksWritten)
      await verify(Math.floor(blocksWritten / 2))
      blocksWritten++
    }
  })()
  let failure: unknown
  writerRun.catch((error) => {
    failure = error
  })
  return {
    async waitForBlocks(blocks: number): Promise<void> {
      const goal = blocksWritten + blocks
      await pollUntil(async () => blocksWritten >= goal || failure !== undefined)
      if (failure) throw failure
    },
    /** Stops writing, verifies all blocks and returns their number. */
    async stop(): Promise<number> {
      isStopped = true
      try {
        await writerRun
        for (let index = 0; index < blocksWritten; index++) await verify(index)
        return blocksWritten
      } finally {
        await file.close()
      }
    },
  }
}

/** Polls until the condition is true or the test times out. */
async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
