import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { inProcessClient, SYSTEM_USER } from '../../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import type { Client } from '../../../client/index.ts'
import { markIdleNodes } from './idle-nodes.ts'
import { localNodeNames } from './node-names.ts'

describe('markIdleNodes', () => {
  let dir: string
  let fixture: ServerFixture
  let client: Client
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-idle-'))
    fixture = await createServerFixture()
    client = inProcessClient(fixture.server.objects, SYSTEM_USER)
    for (const name of ['node-1', 'node-2', 'node-10', 'other']) await createNode(name)
  })
  afterEach(() => rm(dir, { recursive: true }))

  async function createNode(name: string) {
    await mkdir(join(dir, name))
    await client.create(nodeKind, { metadata: { name } } as never)
    const body = { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } }
    await client.patch(nodeKind, { name }, { type: 'merge', body }, { subresource: 'status' })
  }
  const mark = (count: number) => markIdleNodes({ dir, count, nameOf: localNodeNames, client, clock: fixture.clock })
  const readStatus = async (name: string) => {
    const { spec, status } = await client.get(nodeKind, { name })
    const readyCondition = status?.conditions?.find(({ type }) => type === 'Ready')
    return {
      ready: readyCondition?.status,
      message: readyCondition?.message,
      taints: spec?.taints?.map(({ effect }) => effect) ?? [],
    }
  }

  it('marks nodes beyond the count as not ready, with a message, and taints them', async () => {
    expect(await mark(1)).toEqual(['node-2', 'node-10'])
    expect(await readStatus('node-10')).toEqual({
      ready: 'Unknown',
      message: 'stowage up was started without this node. --nodes 10 starts it again.',
      taints: ['NoSchedule', 'NoExecute'],
    })
    for (const name of ['node-1', 'other']) expect(await readStatus(name)).toMatchObject({ ready: 'True', taints: [] })
  })

  it('does not change nodes that are already marked', async () => {
    await mark(1)
    const markedNode = await client.get(nodeKind, { name: 'node-2' })
    expect(await mark(1)).toEqual(['node-2', 'node-10'])
    expect(await client.get(nodeKind, { name: 'node-2' })).toEqual(markedNode)
  })

  it('skips nodes without a Node object and returns no names without a directory', async () => {
    await client.delete(nodeKind, { name: 'node-2' })
    await writeFile(join(dir, 'node-3'), '')
    expect(await mark(1)).toEqual(['node-10'])
    const nodes = { dir: join(dir, 'none'), count: 0, nameOf: localNodeNames }
    expect(await markIdleNodes({ ...nodes, client, clock: fixture.clock })).toEqual([])
  })
})
