import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { createCluster } from './cluster.ts'
import { createSimulation } from './simulation.ts'

const aConfigMap = (name: string) => ({ metadata: { namespace: 'default', name } })

async function createFixture() {
  const simulation = createSimulation(1)
  const cluster = await createCluster(simulation)
  const clients = new Map<string, Client>()
  for (const name of ['deaf', 'other']) cluster.add(name, (_env, client) => void clients.set(name, client))
  return { simulation, cluster, deaf: clients.get('deaf')!, other: clients.get('other')! }
}

describe('the network', () => {
  it('silences the watches of one kind in one process for a while, ends them, and answers 410 to a resume', async () => {
    const { simulation, cluster, deaf, other } = await createFixture()
    const { signal } = new AbortController()
    const { resourceVersion } = await waitFor(deaf.list(configMapKind))
    const ends: string[] = []
    const namesByProcess = { deaf: [] as string[], other: [] as string[] }
    const follow = async (client: Client, names: string[]) => {
      for await (const event of client.watch(configMapKind, { resourceVersion, signal }))
        if (event.type !== 'bookmark') names.push(event.object.metadata.name)
    }
    void follow(other, namesByProcess.other)
    void follow(deaf, namesByProcess.deaf).catch((error: ApiError) => void ends.push(error.message))
    await simulation.runFor(1_000)
    cluster.network.cutHistory(30_000, { process: 'deaf', plural: 'configmaps' })
    await waitFor(cluster.directClient()!.create(configMapKind, aConfigMap('a') as never))
    await simulation.runFor(29_000)
    expect(namesByProcess).toEqual({ deaf: [], other: ['a'] })
    expect(ends).toEqual([])
    await simulation.runFor(2_000)
    expect(ends).toEqual(['the stream broke'])
    const resumedWatch = follow(deaf, namesByProcess.deaf).catch((error: ApiError) => error.code)
    expect(await waitFor(resumedWatch)).toBe(410)
    void follow(deaf, namesByProcess.deaf).catch(() => {})
    await simulation.runFor(1_000)
    expect(namesByProcess.deaf).toEqual(['a'])

    async function waitFor<T>(work: Promise<T>): Promise<T> {
      await simulation.runFor(1_000)
      return work
    }
  })

  it('loses only the replies to writes if onlyReplies is set, and the server executes the writes', async () => {
    const { simulation, cluster, deaf } = await createFixture()
    cluster.network.lossesByProcess.set('deaf', { share: 1, onlyReplies: true })
    const write = deaf.create(configMapKind, aConfigMap('a') as never).catch((error: ApiError) => error.code)
    const read = deaf.list(persistentVolumeClaimKind).then(({ items }) => items.length)
    await simulation.runFor(11_000)
    expect([await write, await read]).toEqual([503, 0])
    const storedObject = cluster.directClient()!.get(configMapKind, { namespace: 'default', name: 'a' })
    await simulation.runFor(1_000)
    expect((await storedObject).metadata.name).toBe('a')
  })
})
