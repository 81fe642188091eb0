import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { ApiError } from '../../api/status-error.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createNodeHeartbeat } from '../../nodeagent/node/node-heartbeat.ts'
import { aWorld, type World } from './node-lifecycle.fixture.ts'

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

let world: World
let isCutOff: boolean
let stop: () => Promise<void>

beforeEach(async () => {
  world = await aWorld()
  isCutOff = false
  stop = await aPresence('a')
})
afterEach(async () => {
  await stop()
  await world.close()
})

/** The part of the node agent that maintains Node and Lease. */
async function aPresence(nodeName: string): Promise<() => Promise<void>> {
  const abort = new AbortController()
  const presence = createNodeHeartbeat({
    client: behindSwitch(world.client),
    nodeName,
    identity: 'one',
    machine: { ...MACHINE },
    labels: {},
    podsMax: 10,
    version: 'v1',
    clock: world.clock,
    log: silentLog,
  })
  await presence.register([], abort.signal)
  await presence.markReady(async () => {}, abort.signal)
  const kept = presence.run(abort.signal)
  return async () => {
    abort.abort()
    await kept
  }
}

function behindSwitch(client: Client): Client {
  const guarded =
    (call: any) =>
    async (...args: any[]) => {
      if (isCutOff) throw new ApiError(503, 'ServiceUnavailable', 'cut off')
      return call(...args)
    }
  const { get, create, update, patch } = client
  return { ...client, get: guarded(get), create: guarded(create), update: guarded(update), patch: guarded(patch) }
}

describe('node lifecycle and the node agent', () => {
  it('SYS-7 a reporting agent never counts as lost', async () => {
    world.start()
    await world.pass(1_000_000)
    expect(world.writes).toEqual([])
    expect((await world.ready('a'))?.status).toBe('True')
  })

  it('SYS-18 a node that was cut off is lost, and recovers within seconds', async () => {
    world.start()
    await world.pass(20_000)
    isCutOff = true
    await world.pass(60_000)
    expect((await world.ready('a'))?.status).toBe('Unknown')
    expect(await world.taints('a')).toHaveLength(2)
    isCutOff = false
    await world.pass(20_000)
    expect((await world.ready('a'))?.status).toBe('True')
    expect(await world.taints('a')).toEqual([])
    expect(world.reasons()).toEqual(['RegisteredNode', 'NodeNotReady', 'NodeReady'])
  })

  it('SYS-7 an agent recreates its deleted Node before its pods are removed', async () => {
    await world.aPod('p', 'a')
    world.start()
    await world.pass(20_000)
    await world.client.delete(nodeKind, { name: 'a' })
    await world.pass(200_000)
    expect((await world.ready('a'))?.status).toBe('True')
    expect(await world.pod('p')).toMatchObject({ status: { phase: 'Pending' } })
  })
})
