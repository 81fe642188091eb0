// Tests the provisioner in an in-memory cluster, with directories as disks.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestCluster, type TestCluster, testProvisioner } from '@stowage/provisioner/testing'
import { tiersProvisioner } from './tiers.js'

const GIB = 1024n ** 3n

describe('tiersProvisioner', () => {
  let dir: string
  let cluster: TestCluster
  const createProvisioner = () =>
    tiersProvisioner({
      fast: { root: join(dir, 'fast'), budgetBytes: 2n * GIB },
      slow: { root: join(dir, 'slow'), budgetBytes: 100n * GIB },
    })
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tiers-'))
    cluster = await startTestCluster(createProvisioner())
  })
  after(async () => {
    await cluster.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('follows the rules for provisioners', () =>
    testProvisioner(createProvisioner(), { claim: { parameters: { tier: 'slow' } } }))

  it('provisions volumes on the disk that their class selects', async () => {
    for (const tier of ['fast', 'slow']) {
      const volume = await cluster.provision({ parameters: { tier } })
      assert.equal(volume.source.hostPath?.path, join(dir, tier, volume.name))
      assert.ok((await readdir(join(dir, tier))).includes(volume.name))
      await cluster.release(volume)
      assert.deepEqual(await readdir(join(dir, tier)), [])
    }
  })

  it("uses the claim's selector if the class does not select a tier", async () => {
    const matchExpressions = [{ key: 'example.com/tier', operator: 'NotIn' as const, values: ['fast'] }]
    const volume = await cluster.provision({ selector: { matchExpressions } })
    assert.equal(volume.labels['example.com/tier'], 'slow')
    await cluster.release(volume)
  })

  it('rejects a selector that contradicts the class', async () => {
    const selector = { matchLabels: { 'example.com/tier': 'slow' } }
    await assert.rejects(cluster.provision({ parameters: { tier: 'fast' }, selector }), /accepts slow only/)
  })

  it('returns the volume of an earlier attempt on another disk, and removes partially written files', async () => {
    await writeFile(join(dir, 'slow', '.pvc-9.size.tmp'), '1')
    const { provision } = createProvisioner()
    const request = {
      volumeName: 'pvc-1',
      sizeBytes: GIB,
      labels: { 'example.com/tier': ['slow'] },
      parameters: { tier: 'slow', reserve: 0n },
    } as unknown as Parameters<typeof provision>[0]
    const call = { signal: new AbortController().signal }
    const firstVolume = await provision(request, call)
    // Before the second attempt, the class was replaced by one that the claim's selector does not accept.
    const secondVolume = await provision({ ...request, parameters: { tier: 'fast', reserve: 0n } }, call)
    assert.deepEqual(secondVolume, firstVolume)
    assert.deepEqual(await readdir(join(dir, 'fast')), [])
    await createProvisioner().delete(
      { name: 'pvc-1', source: firstVolume.source, sizeBytes: GIB, labels: {}, annotations: {} },
      call,
    )
    assert.deepEqual(await readdir(join(dir, 'slow')), [])
  })

  it('expands a volume within the budget of its disk', async () => {
    const volume = await cluster.provision({ parameters: { tier: 'fast' } })
    const expanded = await cluster.expand(volume, '2Gi')
    assert.equal(expanded.sizeBytes, 2n * GIB)
    await assert.rejects(cluster.expand(expanded, '3Gi'), /only 0 bytes are free on the fast disk/)
    await cluster.release(expanded)
  })

  it('rejects a volume that exceeds the budget of the disk', async () => {
    await assert.rejects(cluster.provision({ size: '3Gi', parameters: { tier: 'fast' } }), /2147483648 bytes are free/)
    assert.deepEqual(await readdir(join(dir, 'fast')), [])
  })
})
