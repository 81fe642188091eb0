// A whole cluster in memory around the provisioner; the disks are real directories.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestCluster, type TestCluster, testProvisioner } from 'stowage/provisioner/testing'
import { tiersProvisioner } from './tiers.js'

const GIB = 1024n ** 3n

describe('the tiers provisioner', () => {
  let dir: string
  let cluster: TestCluster
  const plugin = () =>
    tiersProvisioner({
      fast: { root: join(dir, 'fast'), budgetBytes: 2n * GIB },
      slow: { root: join(dir, 'slow'), budgetBytes: 100n * GIB },
    })
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tiers-'))
    cluster = await startTestCluster(plugin())
  })
  after(async () => {
    await cluster.stop()
    await rm(dir, { recursive: true, force: true })
  })

  it('keeps the rules for provisioners', () => testProvisioner(plugin(), { claim: { parameters: { tier: 'slow' } } }))

  it('puts volumes of a fast class on the fast disk, and those of a slow class on the slow one', async () => {
    for (const tier of ['fast', 'slow']) {
      const volume = await cluster.provision({ parameters: { tier } })
      assert.equal(volume.source.hostPath?.path, join(dir, tier, volume.name))
      assert.ok((await readdir(join(dir, tier))).includes(volume.name))
      await cluster.release(volume)
      assert.deepEqual(await readdir(join(dir, tier)), [])
    }
  })

  it('lets a claim choose by its selector, where the class does not', async () => {
    const matchExpressions = [{ key: 'example.com/tier', operator: 'NotIn' as const, values: ['fast'] }]
    const volume = await cluster.provision({ selector: { matchExpressions } })
    assert.equal(volume.labels['example.com/tier'], 'slow')
    await cluster.release(volume)
  })

  it('refuses a selector that contradicts the class', async () => {
    const selector = { matchLabels: { 'example.com/tier': 'slow' } }
    await assert.rejects(cluster.provision({ parameters: { tier: 'fast' }, selector }), /accepts slow only/)
  })

  it('finds what an earlier try made on the other disk, and what a crash left half written is not left', async () => {
    await writeFile(join(dir, 'slow', '.pvc-9.size.tmp'), '1')
    const { provision } = plugin()
    const request = {
      volumeName: 'pvc-1',
      sizeBytes: GIB,
      labels: { 'example.com/tier': ['slow'] },
      parameters: { tier: 'slow', reserve: 0n },
    } as unknown as Parameters<typeof provision>[0]
    const call = { signal: new AbortController().signal }
    const first = await provision(request, call)
    // The class was replaced before the next try, by one that the claim's selector does not even accept.
    const again = await provision({ ...request, parameters: { tier: 'fast', reserve: 0n } }, call)
    assert.deepEqual(again, first)
    assert.deepEqual(await readdir(join(dir, 'fast')), [])
    await plugin().delete({ name: 'pvc-1', source: first.source, sizeBytes: GIB, labels: {}, annotations: {} }, call)
    assert.deepEqual(await readdir(join(dir, 'slow')), [])
  })

  it('does not promise more than the disk has', async () => {
    await assert.rejects(cluster.provision({ size: '3Gi', parameters: { tier: 'fast' } }), /2147483648 bytes left/)
    assert.deepEqual(await readdir(join(dir, 'fast')), [])
  })
})
