import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeyIndex } from './key-index.ts'
import { type Version, versionAt } from './version.ts'

describe('KeyIndex', () => {
  it('gets, scans and counts keys like a sorted list after random inserts, tombstones and deletes', () => {
    const key = fc.tuple(fc.constantFrom('a/', 'b/', 'c/'), fc.nat({ max: 3_000 })).map(([dir, n]) => `${dir}${n}`)
    const step = fc.record({ key, do: fc.constantFrom('put', 'put', 'put', 'tombstone', 'delete') })
    const range = fc.record({
      prefix: fc.constantFrom('', 'a', 'b/', 'b/1', 'd'),
      afterKey: fc.option(key, { nil: undefined }),
    })
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 500, maxLength: 4_000, size: 'max' }),
        range,
        fc.nat(),
        (steps, scannedRange, revisionSeed) => {
          const index = new KeyIndex()
          const expectedVersions = new Map<string, Version>()
          for (const [revision, currentStep] of steps.entries()) {
            if (currentStep.do === 'delete') {
              index.delete(currentStep.key)
              expectedVersions.delete(currentStep.key)
              continue
            }
            const version = aVersion({
              key: currentStep.key,
              revision,
              isDeleted: currentStep.do === 'tombstone',
              previous: expectedVersions.get(currentStep.key),
            })
            index.set(version)
            expectedVersions.set(currentStep.key, version)
          }
          const { prefix, afterKey = '' } = scannedRange
          const matchingVersions = [...expectedVersions.values()]
            .filter((version) => version.key.startsWith(prefix) && version.key > afterKey)
            .sort((a, b) => (a.key < b.key ? -1 : 1))
          const scannedVersions: Version[] = []
          index.scan(scannedRange, (version) => scannedVersions.push(version) > 0)
          expect(scannedVersions).toEqual(matchingVersions)
          for (const version of matchingVersions) expect(index.get(version.key)).toBe(version)
          expect(index.get('unknown')).toBeUndefined()

          for (const revision of [steps.length, revisionSeed % steps.length]) {
            const visibleVersions = matchingVersions.filter((version) => versionAt(version, revision))
            expect(index.count(scannedRange, revision)).toBe(visibleVersions.length)
          }
          expect(index.liveCount).toBe([...expectedVersions.values()].filter(({ isDeleted }) => !isDeleted).length)
        },
      ),
      { numRuns: 30 },
    )
  })

  it('bulk-loads the same index as inserting key by key', () => {
    const versions = Array.from({ length: 3_000 }, (_, index) =>
      aVersion({ key: `k/${(index * 7_919) % 3_001}`, revision: index, isDeleted: index % 5 === 0 }),
    )
    const index = KeyIndex.fromVersions(new Map(versions.map((version) => [version.key, version])))
    const incrementalIndex = new KeyIndex()
    for (const version of versions) incrementalIndex.set(version)
    for (const revision of [0, 1_000, 3_000]) {
      expect(index.count({ prefix: 'k/1' }, revision)).toBe(incrementalIndex.count({ prefix: 'k/1' }, revision))
    }
    expect(index.liveCount).toBe(2_400)
    const keysOf = (keyIndex: KeyIndex) => {
      const keys: string[] = []
      keyIndex.scan({ prefix: '' }, ({ key }) => keys.push(key) > 0)
      return keys
    }
    expect(keysOf(index)).toEqual(keysOf(incrementalIndex))
    index.set(aVersion({ key: 'k/1/new' }))
    expect(index.get('k/1/new')).toBeDefined()
  })

  it('stops a scan when the visitor returns false', () => {
    const index = new KeyIndex()
    for (const key of ['a', 'b', 'c']) index.set(aVersion({ key }))
    const visitedKeys: string[] = []
    index.scan({ prefix: '' }, ({ key }) => {
      visitedKeys.push(key)
      return key !== 'b'
    })
    expect(visitedKeys).toEqual(['a', 'b'])
  })
})

function aVersion(version: Partial<Version> & { key: string }): Version {
  return {
    revision: 1,
    createRevision: 1,
    expiresAtMs: undefined,
    isDeleted: false,
    checksum: 0,
    valueBytes: 0,
    previous: undefined,
    ...version,
  }
}
