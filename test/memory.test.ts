// Tests how much memory a server needs for each stored object after a restart, once its controllers have listed all of them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { INSPECTOR_ENV, readLiveMemory } from './helpers/inspector.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const COMMITS = '/apis/stowage.dev/v1/commits'
const COMMIT_WRITES = 500
/** Fills the caches of decoded objects. Their size differs by up to 6 MB between starts: 60 bytes per further object. */
const FIRST_OBJECTS = 12_000
const FURTHER_OBJECTS = 96_000
/** Suffices for the index of the store, and for the metadata that the garbage and namespace controllers share. */
const OBJECT_HEAP_BYTES_MAX = 600
const OBJECT_BUFFER_BYTES_MAX = 50

let dataDir: string
let server: RunningServer | undefined

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'stowage-memory-'))
})
afterEach(async () => {
  await server?.kill()
  await rm(dataDir, { recursive: true, force: true })
})

async function restart(): Promise<RunningServer> {
  await server?.stop()
  server = await startServer({ dataDir, env: INSPECTOR_ENV })
  return server
}

/** Resolves when the namespace controller has deleted a namespace. It does so only after the caches are synced. */
async function waitUntilSynced({ call }: RunningServer): Promise<void> {
  await call('POST', '/api/v1/namespaces', { metadata: { name: 'probe' } })
  await call('DELETE', '/api/v1/namespaces/probe')
  while ((await call('GET', '/api/v1/namespaces/probe')).status !== 404)
    await new Promise((resolve) => setTimeout(resolve, 50)) // polls until the test times out
}

async function createConfigMaps({ call }: RunningServer, firstNumber: number, endNumber: number): Promise<void> {
  for (let start = firstNumber; start < endNumber; start += COMMIT_WRITES) {
    const writes = Array.from({ length: COMMIT_WRITES }, (_, index) => ({
      verb: 'create',
      apiVersion: 'v1',
      resource: 'configmaps',
      namespace: 'default',
      body: { metadata: { name: `map-${start + index}` }, data: { value: 'x'.repeat(300) } },
    }))
    const { status, text } = await call('POST', COMMITS, { writes })
    if (status !== 200) throw new Error(text)
  }
}

async function readMemoryAfterRestart(): Promise<{ heap: number; buffers: number }> {
  const restartedServer = await restart()
  await waitUntilSynced(restartedServer)
  return readLiveMemory(restartedServer)
}

describe("a server's memory", () => {
  it(`grows by less than ${OBJECT_HEAP_BYTES_MAX} bytes of heap and ${OBJECT_BUFFER_BYTES_MAX} bytes of buffers per ConfigMap`, async () => {
    await createConfigMaps(await restart(), 0, FIRST_OBJECTS)
    const memoryBefore = await readMemoryAfterRestart()
    await createConfigMaps(server!, FIRST_OBJECTS, FIRST_OBJECTS + FURTHER_OBJECTS)
    const memoryAfter = await readMemoryAfterRestart()
    expect((memoryAfter.heap - memoryBefore.heap) / FURTHER_OBJECTS).toBeLessThan(OBJECT_HEAP_BYTES_MAX)
    expect((memoryAfter.buffers - memoryBefore.buffers) / FURTHER_OBJECTS).toBeLessThan(OBJECT_BUFFER_BYTES_MAX)
  })
})
