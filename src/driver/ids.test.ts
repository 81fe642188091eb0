import { assert, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSnapshotId, isVolumeId, snapshotIdOf, volumeIdOf } from './ids.ts'

describe('ids', () => {
  it('are the same for the same name', () => {
    expect(volumeIdOf('pvc-1')).toBe(volumeIdOf('pvc-1'))
    expect(volumeIdOf('pvc-1')).toBe('v-6kdi4gvhzk3gsul43h22wg3zk7')
  })

  it('are plain file names and unique for any name', () => {
    const namesById = new Map<string, string>()
    assert(
      property(string({ unit: 'binary', maxLength: 128 }), (name) => {
        const id = volumeIdOf(name)
        expect(id).toMatch(/^v-[a-z2-7]{26}$/)
        expect(isVolumeId(id)).toBe(true)
        expect(isSnapshotId(id)).toBe(false)
        expect(isSnapshotId(snapshotIdOf(name))).toBe(true)
        expect(namesById.get(id) ?? name).toBe(name)
        namesById.set(id, name)
      }),
    )
  })

  it.each(['../../etc/passwd', 'v-', 'fake-vol-id', `v-${'a'.repeat(27)}`, `v-${'a'.repeat(26)}/..`, '', 'v-\0'])(
    'have a format that %j does not have',
    (text) => expect(isVolumeId(text)).toBe(false),
  )
})
