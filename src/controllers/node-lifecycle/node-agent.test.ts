// Tests the node lifecycle controllers together with the heartbeat of the node agent.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { ApiError } from '../../api/status-error.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createNodeHeartbeat } from '../../nodeagent/node/node-heartbeat.ts'
import { createNodeLifecycleFixture, type NodeLifecycleFixture } from './node-lifecycle.fixture.ts'

const MACHINE = {
  hostname: 'a',
  address: '192.0.2.1',
  os: 'linux',
  arch: 'amd64',
  cpus: 2,
  memoryBytes: 1024 ** 3,
  kernel: '6',
  system: 'any',
  machineId: 'machine',
  bootId: 'boot',
}

let fixture: NodeLifecycleFixture
let isDisconnected: boolean
let stop: () => Promise<void>

beforeEach(async () => {
  fixture = await createNodeLifecycleFixture()
  isDisconnected = false
  stop = await startHeartbeat('a')
})
afterEach(async () => {
  await stop()
  await fixture.close()
})

/** Starts the part of the node agent that maintains the Node and its Lease. Returns a function that stops it. */
async function startHeartbeat(nodeName: string): Promise<() => Promise<void>> {
  const abort = new AbortController()
  const heartbeat = createNodeHeartbeat({
    client: failWhileDisconnected(fixture.client),
    nodeName,
    identity: 'one',
    machine: { ...MACHINE },
    labels: {},
    podsMax: 10,
    version: 'v1',
    clock: fixture.clock,
    log: silentLog,
  })
  await heartbeat.register([], abort.signal)
  await heartbeat.markReady(async () => {}, abort.signal)
  const run = heartbeat.run(abort.signal)
  return async () => {
    abort.abort()
    await run
  }
}

function failWhileDisconnected(client: Client): Client {
  const failIfDisconnected =
    (call: any) =>
    async (...args: any[]) => {
      if (isDisconnected) throw new ApiError(503, 'ServiceUnavailable', 'disconnected')
      return call(...args)
    }
  const { get, create, update, patch } = client
  return {
    ...client,
    get: failIfDisconnected(get),
    create: failIfDisconnected(create),
    update: failIfDisconnected(update),
    patch: failIfDisconnected(patch),
  }
}

describe('node lifecycle and the node agent', () => {
  it('keeps a node ready while its agent reports', async () => {
    fixture.start()
    await fixture.advance(1_000_000)
    expect(fixture.writes).toEqual([])
    expect((await fixture.ready('a'))?.status).toBe('True')
  })

  it('marks a disconnected node unreachable, and ready within 20 seconds after it is reconnected', async () => {
    fixture.start()
    await fixture.advance(20_000)
    isDisconnected = true
    await fixture.advance(60_000)
    expect((await fixture.ready('a'))?.status).toBe('Unknown')
    expect(await fixture.taints('a')).toHaveLength(2)
    isDisconnected = false
    await fixture.advance(20_000)
    expect((await fixture.ready('a'))?.status).toBe('True')
    expect(await fixture.taints('a')).toEqual([])
    expect(fixture.eventReasons()).toEqual(['RegisteredNode', 'NodeNotReady', 'NodeReady'])
  })

  it('keeps the pods of a deleted node that its agent recreates', async () => {
    await fixture.createPod('p', 'a')
    fixture.start()
    await fixture.advance(20_000)
    await fixture.client.delete(nodeKind, { name: 'a' })
    await fixture.advance(200_000)
    expect((await fixture.ready('a'))?.status).toBe('True')
    expect(await fixture.pod('p')).toMatchObject({ status: { phase: 'Pending' } })
  })
})
