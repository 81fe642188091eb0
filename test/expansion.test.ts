// Expands a volume the way a user does: `stowage up` with one node, a pod under continuous IO, and a claim that is edited;
// then an impossible size, its cancellation, and a smaller size that fits. The data does not change.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, open, realpath, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'

const noLoops = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const GI = 1024 ** 3
const MERGE = { 'content-type': 'application/merge-patch+json' }

describe.skipIf(noLoops)(`expansion${noLoops ? ` (${noLoops})` : ''}`, () => {
  let dir: string
  let traces: Traces
  let server: RunningServer
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-expansion-')))
    await mkdir(join(dir, 'data'))
    traces = await tracesBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '5Gi'] })
  })
  afterAll(async () => {
    await server?.stop()
    await traces?.scrub()
    await rm(dir, { recursive: true, force: true })
  })

  const claim = async (name = 'orders') => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const ask = async (storage: string, name = 'orders') => {
    const { status } = await server.call(
      'PATCH',
      `${CLAIMS}/${name}`,
      { spec: { resources: { requests: { storage } } } },
      MERGE,
    )
    expect(status).toBe(200)
  }
  /** Events arrive a moment after the change they report. */
  const hasEvent = (reason: string, message: RegExp) =>
    until(async () => {
      const { json } = await server.call('GET', '/api/v1/events')
      return json.items.some((event: any) => event.reason === reason && message.test(event.message))
    })
  const grownTo = (size: string, name?: string) =>
    until(async () => (await claim(name)).status.capacity.storage === size)

  const aClaim = (name: string, storage: string, volumeMode = 'Filesystem') =>
    server.call('POST', CLAIMS, {
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], volumeMode, resources: { requests: { storage } } },
    })

  /** Where the pod's volume is mounted. */
  async function aPodOn(name: string, isDevice = false): Promise<string> {
    const use = isDevice
      ? { volumeDevices: [{ name, devicePath: '/dev/raw' }] }
      : { volumeMounts: [{ name, mountPath: '/data' }] }
    await server.call('POST', PODS, {
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'none', ...use }],
        volumes: [{ name, persistentVolumeClaim: { claimName: name } }],
      },
    })
    await until(async () => (await server.call('GET', `${PODS}/${name}`)).json.status?.phase === 'Running')
    const pod = (await server.call('GET', `${PODS}/${name}`)).json
    const { volumeName } = (await claim(name)).spec
    const root = join(dir, 'data', 'nodes', pod.spec.nodeName, 'agent', 'pods', pod.metadata.uid)
    return isDevice
      ? join(root, 'volumeDevices', 'kubernetes.io~csi', volumeName)
      : join(root, 'volumes', 'kubernetes.io~csi', volumeName, 'mount')
  }

  it('REX-1 REX-2 REX-7 PLUS-12 expands online under verified IO; cancels an impossible size, then a smaller one succeeds', async () => {
    await aClaim('orders', '1Gi')
    const path = await aPodOn('orders')
    const io = await verifiedIo(join(path, 'log'))
    let blocksWhole = 0
    try {
      await io.hasWritten(100)
      expect((await statfs(path)).blocks * (await statfs(path)).bsize).toBeLessThan(1.05 * GI)

      await ask('2Gi')
      await grownTo('2Gi')
      const { bsize, blocks } = await statfs(path)
      expect(blocks * bsize).toBeGreaterThan(1.8 * GI)
      await promisify(execFile)('fallocate', ['-l', '1200M', join(path, 'more-than-there-was')])
      expect((await stat(join(path, 'more-than-there-was'))).size).toBe(1200 * 1024 ** 2)
      const after = (await claim()).status
      expect(after.allocatedResourceStatuses).toBeUndefined()
      expect(after.conditions ?? []).toEqual([])
      await hasEvent('FileSystemResizeSuccessful', /succeeded/)
      await io.hasWritten(100)

      await ask('500Gi')
      await until(
        async () => (await claim()).status.allocatedResourceStatuses?.storage === 'ControllerResizeInfeasible',
      )
      await hasEvent('VolumeResizeFailed', /needs 498Gi more, and .* are missing/)
      await ask('2Gi')
      await until(async () => (await claim()).status.allocatedResourceStatuses === undefined)
      expect((await claim()).status).toMatchObject({ capacity: { storage: '2Gi' } })
      expect((await claim()).status.conditions ?? []).toEqual([])
      await hasEvent('StorageRequestLowered', /from 500Gi to 2Gi/)

      await ask('3Gi')
      await grownTo('3Gi')
      await io.hasWritten(100)
    } finally {
      blocksWhole = await io.stop()
    }
    expect(blocksWhole).toBeGreaterThanOrEqual(300)
    const left = await claim()
    expect(left.spec.allocatedResources.storage, 'the mark stays').toBe('500Gi')
  }, 120_000)

  it('REX-1 expands a block device in use, and keeps its bytes', async () => {
    await aClaim('raw', '64Mi', 'Block')
    const device = await open(await aPodOn('raw', true), 'r+')
    try {
      await device.write('bytes', 0)
      await device.sync()
      const beyond = 100 * 1024 ** 2
      expect((await device.read(Buffer.alloc(4), 0, 4, beyond)).bytesRead).toBe(0)
      await ask('128Mi', 'raw')
      await grownTo('128Mi', 'raw')
      expect((await device.read(Buffer.alloc(4), 0, 4, beyond)).bytesRead).toBe(4)
      expect((await device.read(Buffer.alloc(5), 0, 5, 0)).buffer.toString()).toBe('bytes')
    } finally {
      await device.close()
    }
  }, 60_000)

  it('REX-1 (37) expands an unused volume when the next pod uses it', async () => {
    await aClaim('quiet', '320Mi')
    await aPodOn('quiet')
    await server.call('DELETE', `${PODS}/quiet`)
    await until(async () => (await server.call('GET', `${PODS}/quiet`)).status === 404)
    await ask('400Mi', 'quiet')
    await until(async () => (await claim('quiet')).status.allocatedResourceStatuses?.storage === 'NodeResizePending')
    const waiting = (await claim('quiet')).status
    expect(waiting.conditions.map(({ type }: any) => type).sort()).toEqual(['FileSystemResizePending', 'Resizing'])
    expect(waiting.capacity.storage).toBe('320Mi')
    const path = await aPodOn('quiet')
    await grownTo('400Mi', 'quiet')
    const { bsize, blocks } = await statfs(path)
    expect(blocks * bsize).toBeGreaterThan(320 * 1024 ** 2)
    expect((await claim('quiet')).status.allocatedResourceStatuses).toBeUndefined()
  }, 60_000)

  it('SYS-7 leaves nothing on the machine after everything is deleted', async () => {
    const remaining = async (path: string) => (await server.call('GET', path)).json.items.length
    for (const path of [PODS, CLAIMS]) {
      await server.call('DELETE', path)
      await until(async () => (await remaining(path)) === 0)
    }
    await until(async () => (await remaining('/api/v1/persistentvolumes')) === 0)
    expect(await traces.list()).toEqual([])
  }, 60_000)
})

const BLOCK_BYTES = 64 * 1024

/** Writes blocks whose content encodes their position, syncs and reads them back; any difference is an error. */
async function verifiedIo(path: string) {
  const file = await open(path, 'w+')
  let written = 0
  let isOver = false
  const blockAt = (index: number): Buffer => {
    const seed = createHash('sha256').update(`block ${index}`).digest()
    return Buffer.alloc(BLOCK_BYTES, seed)
  }
  async function verify(index: number): Promise<void> {
    const read = Buffer.alloc(BLOCK_BYTES)
    await file.read(read, 0, BLOCK_BYTES, index * BLOCK_BYTES)
    if (!read.equals(blockAt(index))) throw new Error(`block ${index} is not what was written`)
  }
  const running = (async () => {
    while (!isOver) {
      await file.write(blockAt(written), 0, BLOCK_BYTES, written * BLOCK_BYTES)
      await file.datasync()
      await verify(written)
      await verify(Math.floor(written / 2))
      written++
    }
  })()
  let failure: unknown
  running.catch((error) => {
    failure = error
  })
  return {
    async hasWritten(blocks: number): Promise<void> {
      const goal = written + blocks
      await until(async () => written >= goal || failure !== undefined)
      if (failure) throw failure
    },
    /** Reads everything once more and returns the number of blocks. */
    async stop(): Promise<number> {
      isOver = true
      try {
        await running
        for (let index = 0; index < written; index++) await verify(index)
        return written
      } finally {
        await file.close()
      }
    },
  }
}

/** Polls until the test's own timeout. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
