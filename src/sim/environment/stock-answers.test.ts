import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { createCluster } from './cluster.ts'
import { createSimulation } from './simulation.ts'
import { createStockAnswers } from './stock-answers.ts'

async function createFixture() {
  const simulation = createSimulation(1)
  const cluster = await createCluster(simulation)
  const answers = createStockAnswers(simulation)
  const clients: Client[] = []
  cluster.add('controller', (_env, client) => void clients.push(client), answers.wrap)
  const settle = async <T>(request: Promise<T>): Promise<T> => {
    void request.catch(() => {})
    await simulation.runFor(1_000)
    return request
  }
  const codeOf = (request: Promise<unknown>) =>
    settle(
      request.then(
        () => 200,
        (error: ApiError) => error.code,
      ),
    )
  return { simulation, answers, client: clients[0]!, settle, codeOf }
}

describe('stock answers of a simulated server', () => {
  it('answer 403 to denied verbs, and 404 to lists of a kind that is not served, until these faults end', async () => {
    const { answers, client, codeOf } = await createFixture()
    const list = () => codeOf(client.list(csiNodeKind))
    const get = () => codeOf(client.get(csiNodeKind, { name: 'n1' }))
    const allow = answers.deny('csinodes', ['list', 'watch'])
    expect([await list(), await get()]).toEqual([403, 404])
    allow()
    expect(await list()).toBe(200)
    answers.stopServing('csinodes')
    expect(await list()).toBe(404)
    answers.heal()
    expect(await list()).toBe(200)
  })

  it('end watches within eight minutes, and reject a share of the requests until heal is called', async () => {
    const { simulation, answers, client, codeOf, settle } = await createFixture()
    const { resourceVersion } = await settle(client.list(csiNodeKind))
    let endCount = 0
    const { signal } = new AbortController()
    for (let i = 0; i < 5; i++) {
      const watch = client.watch(csiNodeKind, { resourceVersion, signal })[Symbol.asyncIterator]()
      const follow = async () => {
        while (!(await watch.next()).done);
        endCount++
      }
      void follow()
    }
    await simulation.runFor(8 * 60_000)
    expect(endCount).toBe(5)
    const codes = async () =>
      new Set(await Promise.all(Array.from({ length: 800 }, () => codeOf(client.list(csiNodeKind)))))
    expect([...(await codes())].sort()).toEqual([200, 429])
    answers.heal()
    expect([...(await codes())]).toEqual([200])
  })

  it("reject iops in the capacity of a volume and in a claim's status", async () => {
    const { client, codeOf } = await createFixture()
    const capacity = { storage: '1Gi', iops: '100' }
    const volume = {
      metadata: { name: 'data' },
      spec: { capacity, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } },
    }
    expect(await codeOf(client.create(persistentVolumeKind, volume as never))).toBe(422)
    const { iops: _, ...storage } = capacity
    const valid = { ...volume, spec: { ...volume.spec, capacity: storage } }
    expect(await codeOf(client.create(persistentVolumeKind, valid as never))).toBe(200)
    const patchVolume = (body: readonly object[]) =>
      codeOf(client.patch(persistentVolumeKind, { name: 'data' }, { type: 'json', body }))
    expect(await patchVolume([{ op: 'add', path: '/spec/capacity/iops', value: '100' }])).toBe(422)
    expect(await patchVolume([{ op: 'replace', path: '/spec/capacity/storage', value: '2Gi' }])).toBe(200)

    const claim = {
      metadata: { namespace: 'default', name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi', iops: '100' } } },
    }
    expect(await codeOf(client.create(persistentVolumeClaimKind, claim as never))).toBe(200)
    const patchStatus = (status: object) =>
      codeOf(
        client.patch(
          persistentVolumeClaimKind,
          claim.metadata,
          { type: 'merge', body: { status } },
          { subresource: 'status' },
        ),
      )
    expect(await patchStatus({ allocatedResources: { storage: '1Gi', iops: '100' } })).toBe(422)
    expect(await patchStatus({ allocatedResources: { storage: '1Gi' } })).toBe(200)
  })
})
