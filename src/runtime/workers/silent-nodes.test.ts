import { expect, it } from 'vitest'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { inProcessClient } from '../../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { createCacheSet } from '../cache-set.ts'
import { createSilentNodes } from './silent-nodes.ts'

it('PLUS-11 a node is silent while its condition Ready is Unknown, and its return is announced once', async () => {
  const { server, clock, store } = await createServerFixture()
  const client = inProcessClient(server.objects, SYSTEM_USER)
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  const silentNodes = createSilentNodes(caches)
  const returnedNodes: string[] = []
  const unsubscribe = silentNodes.onReturn((name) => returnedNodes.push(name))
  const report = async (name: string, status: string) => {
    const patch = { type: 'merge' as const, body: { status: { conditions: [{ type: 'Ready', status }] } } }
    const { metadata } = await client.patch(nodeKind, { name }, patch, { subresource: 'status' })
    await caches.of(nodeKind).whenReached(metadata.resourceVersion, new AbortController().signal)
  }
  for (const name of ['node-1', 'node-2']) await client.create(nodeKind, { metadata: { name } })
  await report('node-1', 'Unknown')
  await report('node-2', 'False')
  expect(['node-1', 'node-2', 'zone-a'].filter(silentNodes.has)).toEqual(['node-1'])
  expect(returnedNodes).toEqual([])
  await report('node-1', 'True')
  await report('node-1', 'False')
  expect(silentNodes.has('node-1')).toBe(false)
  expect(returnedNodes).toEqual(['node-1'])

  await report('node-2', 'Unknown')
  await client.delete(nodeKind, { name: 'node-2' })
  while (returnedNodes.length < 2) await new Promise((resolve) => setImmediate(resolve))
  expect(returnedNodes).toEqual(['node-1', 'node-2'])
  unsubscribe()
  await caches.stop()
  await store.close()
})
