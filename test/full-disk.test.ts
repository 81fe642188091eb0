// Starts, runs and restarts the server on a file system that is full. The store is a memory-mapped file, so without checks
// the process would end with SIGBUS or SIGSEGV and no message.
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, statfs, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundleChild, runChild } from '../src/store/testing/run-child.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const skipMessage = skipReason(await probeThisMachine(), ['mount'])
const servers: RunningServer[] = []
let disk: string

beforeAll(async () => {
  if (skipMessage) return
  disk = await mkdtemp(join(tmpdir(), 'stowage-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk])
})

afterAll(async () => {
  if (skipMessage) return
  await Promise.all(servers.map((server) => server.kill().catch(() => {})))
  execFileSync('umount', [disk])
  await rm(disk, { recursive: true })
})

/** Fills the disk with a file, except for the given number of bytes. */
async function fillDisk(exceptBytes: number): Promise<string> {
  const filler = join(disk, 'filler')
  await rm(filler, { force: true })
  const { bavail, bsize } = await statfs(disk)
  await writeFile(filler, Buffer.alloc(bavail * bsize - exceptBytes)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC') throw error // the server wrote at the same time
  })
  return filler
}

it.skipIf(skipMessage)(
  `stowage up on a full disk names the disk and the missing space${skipMessage ? ` (${skipMessage})` : ''}`,
  async () => {
    await fillDisk(16 * 1_024)
    const dataDir = join(disk, 'data')
    const expectedResult = {
      code: 1,
      stderr:
        `stowage: The disk is full: the file system mounted at ${disk}, which holds ${dataDir}, has 16 KiB available. ` +
        'At least 4096 KiB are needed: free another 4080 KiB, or choose a directory on another disk.\n',
    }
    for (let start = 0; start < 2; start++) {
      expect(await runStowage('up', '--data-dir', dataDir, '--listen', '127.0.0.1:0')).toMatchObject(expectedResult)
    }
  },
)

it.skipIf(skipMessage)(
  `a process that opens a store on a full disk exits with a message instead of a signal${skipMessage ? ` (${skipMessage})` : ''}`,
  async () => {
    const program = await bundleChild('open-store-child.ts')
    for (const availableKib of [8, 16, 20, 64]) {
      await fillDisk(availableKib * 1_024)
      const child = runChild([...program.command, join(disk, 'store')])
      expect(await child.whenExited()).toEqual({ code: 1, signal: null })
      expect(child.errors()).toContain('At least 1024 KiB are needed')
    }
    await program.remove()
  },
)

it.skipIf(skipMessage)(
  `SYS-1 a server whose disk becomes full rejects writes, serves reads, recovers, and restarts when there is room${skipMessage ? ` (${skipMessage})` : ''}`,
  async () => {
    await rm(join(disk, 'filler'), { force: true })
    const dataDir = join(disk, 'running')
    const start = async () => {
      const startedServer = await startServer({ dataDir, command: 'server', flags: ['--log-level', 'silent'] })
      servers.push(startedServer)
      return startedServer
    }
    const configMaps = '/api/v1/namespaces/default/configmaps'
    const configMap = (name: string) => ({ metadata: { name }, data: { filler: 'x'.repeat(100_000) } })
    const server = await start()
    expect((await server.call('POST', configMaps, configMap('before'))).status).toBe(201)
    const filler = await fillDisk(0)
    const rejectedResponse = await server.call('POST', configMaps, configMap('during'))
    expect(rejectedResponse.json).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      code: 500,
      reason: 'InternalError',
      message: expect.stringMatching(
        `nothing was written: ${dataDir}/store/store.mdb: .*; the file system mounted at ${disk} has \\d+ KiB available`,
      ),
    })
    expect((await server.call('GET', `${configMaps}/before`)).json.data.filler).toHaveLength(100_000)
    const readyResponse = await server.call('GET', '/readyz')
    expect(readyResponse.status).toBe(503)
    expect(readyResponse.text).toContain('[-]store failed: the last write failed')
    await truncate(filler, 0)
    expect((await server.call('POST', configMaps, configMap('after'))).status).toBe(201)
    expect((await server.call('GET', '/readyz')).status).toBe(200)

    await fillDisk(0)
    await server.kill()
    const restartResult = await runStowage('server', '--data-dir', dataDir, '--listen', '127.0.0.1:0')
    expect(restartResult.code).toBe(1)
    expect(restartResult.stderr).toMatch(
      new RegExp(
        `^stowage: The disk is full: the file system mounted at ${disk}, which holds ${dataDir}, has \\d+ KiB`,
      ),
    )
    await truncate(filler, 0)
    const recoveredServer = await start()
    const names = (await recoveredServer.call('GET', configMaps)).json.items.map(
      ({ metadata }: { metadata: { name: string } }) => metadata.name,
    )
    expect(names).toEqual(['after', 'before'])
    expect(await recoveredServer.stop()).toBe(0)
  },
)
