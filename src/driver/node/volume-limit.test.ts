import { describe, expect, it } from 'vitest'
import { outcomeOf } from '../driver.fixture.ts'
import { type VolumeId, volumeIdOf } from '../ids.ts'
import { type MountRecord, RECORD_FORMAT } from '../pool/records.ts'
import { createVolumeLimit } from './volume-limit.ts'

const [first, second, third] = ['first', 'second', 'third'].map((name) => volumeIdOf(name)) as [
  VolumeId,
  VolumeId,
  VolumeId,
]
const stagedRecord = (id: VolumeId): MountRecord => ({
  format: RECORD_FORMAT,
  id,
  published: [],
  staged: { path: `/stage/${id}`, accessType: 'mount', accessMode: 'SINGLE_NODE_WRITER', flagsDigest: '' },
})

describe('the limit of volumes per node', () => {
  it('counts volumes that are staged and volumes that are being staged, each once', async () => {
    const records = [stagedRecord(first)]
    const limit = createVolumeLimit(2, { list: () => records })
    let finish = () => {}
    const staging = limit.run(
      second,
      () =>
        new Promise<void>((resolve) => {
          finish = resolve
        }),
    )
    expect(await outcomeOf(limit.run(third, async () => {}))).toMatch(
      /^RESOURCE_EXHAUSTED: .*this node already has 2 staged volumes, the maximum of --max-volumes-per-node/,
    )
    expect(await outcomeOf(limit.run(first, async () => {}))).toBe('OK')
    finish()
    await staging
  })

  it('admits another volume after a staging has failed', async () => {
    const limit = createVolumeLimit(1, { list: () => [] })
    await expect(limit.run(first, () => Promise.reject(new Error('no device')))).rejects.toThrow('no device')
    expect(await outcomeOf(limit.run(second, async () => {}))).toBe('OK')
  })

  it('admits any number of volumes if it is not set', async () => {
    const limit = createVolumeLimit(undefined, { list: () => [first, second].map(stagedRecord) })
    expect(await outcomeOf(limit.run(third, async () => {}))).toBe('OK')
  })
})
