import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { inClusterConnection } from './in-cluster.ts'

describe('inClusterConnection', () => {
  it('reads the address from the environment, and the token and CA from files; fails outside a cluster', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-in-cluster-'))
    onTestFinished(() => rm(dir, { recursive: true }))
    await writeFile(join(dir, 'ca.crt'), 'CA')
    await writeFile(join(dir, 'token'), 'one')
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    const connection = await inClusterConnection({ clock: manualClock(), env, dir })
    expect(connection).toMatchObject({ server: 'https://[fd00::1]:443', ca: 'CA' })
    expect(await connection.credentials()).toEqual({ token: 'one' })
    await expect(inClusterConnection({ clock: manualClock(), env: {}, dir })).rejects.toThrow(
      'Not running in a cluster',
    )
  })
})
