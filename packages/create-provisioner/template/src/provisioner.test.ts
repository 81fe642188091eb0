// Checks the rules for provisioners in an in-memory cluster.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestCluster, testProvisioner } from '@stowage/provisioner/testing'
import { createDirectoryProvisioner } from './provisioner.js'

describe('createDirectoryProvisioner', () => {
  let root: string
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'volumes-'))
  })
  after(() => rm(root, { recursive: true, force: true }))

  it('follows the rules for provisioners', () => testProvisioner(createDirectoryProvisioner(root)))

  it('creates a directory, and deletes it with the claim', async () => {
    const cluster = await startTestCluster(createDirectoryProvisioner(root))
    try {
      const volume = await cluster.provision({ size: '5Gi' })
      assert.ok((await readdir(root)).includes(volume.name))
      await cluster.release(volume)
      assert.deepEqual(await readdir(root), [])
    } finally {
      await cluster.stop()
    }
  })
})
