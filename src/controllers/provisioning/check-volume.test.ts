import { describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'
import { aClaim, build, NEW_VOLUME } from './built-volume.fixture.ts'
import { isSameStorage, mismatchOf } from './check-volume.ts'

describe('mismatchOf', () => {
  const aProvisionedVolume = (spec: object, labels?: Record<string, string>): PersistentVolume => {
    const volume = build({ ...NEW_VOLUME, ...(labels ? { labels } : {}) })
    return { ...volume, spec: { ...volume.spec, ...spec } }
  }
  it.each([
    ['PROV-11 accepts the requested capacity', aClaim(), aProvisionedVolume({}), undefined],
    ['PROV-11 accepts a larger capacity', aClaim(), aProvisionedVolume({ capacity: { storage: '5Gi' } }), undefined],
    [
      'PROV-11 accepts the requested capacity in another unit',
      aClaim(),
      aProvisionedVolume({ capacity: { storage: '4294967296' } }),
      undefined,
    ],
    [
      'PROV-11 rejects a capacity that is one byte too small',
      aClaim(),
      aProvisionedVolume({ capacity: { storage: '4294967295' } }),
      'it has 4294967295',
    ],
    ['PROV-11 rejects a missing capacity', aClaim(), aProvisionedVolume({ capacity: {} }), 'reports no capacity'],
    [
      'PROV-11 rejects a missing access mode',
      aClaim(),
      aProvisionedVolume({ accessModes: ['ReadOnlyMany'] }),
      'lacks the access modes ReadWriteOnce',
    ],
    [
      'PROV-11 accepts additional access modes',
      aClaim(),
      aProvisionedVolume({ accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] }),
      undefined,
    ],
    [
      'PROV-11 rejects another volume mode',
      aClaim(),
      aProvisionedVolume({ volumeMode: 'Block' }),
      'its volumeMode is Block',
    ],
    [
      'PROV-11 rejects missing labels of the selector',
      aClaim({ selector: { matchLabels: { z: 'a' } } }),
      aProvisionedVolume({}),
      'labels',
    ],
    [
      'PROV-11 accepts labels that match the selector',
      aClaim({ selector: { matchLabels: { z: 'a' } } }),
      aProvisionedVolume({}, { z: 'a' }),
      undefined,
    ],
    [
      'PROV-11 rejects labels that the selector excludes',
      aClaim({ selector: { matchExpressions: [{ key: 'z', operator: 'NotIn', values: ['a'] }] } }),
      aProvisionedVolume({}, { z: 'a' }),
      'labels',
    ],
  ] as [string, Claim, PersistentVolume, string | undefined][])('%s', (_title, claim, volume, expected) => {
    const mismatch = mismatchOf(volume, claim)
    if (expected === undefined) expect(mismatch).toBeUndefined()
    else expect(mismatch).toContain(expected)
  })
})

describe('isSameStorage', () => {
  const aVolume = (spec: object): PersistentVolume => ({ metadata: { name: 'pv' }, spec })
  it.each([
    [
      'PROV-12 returns true for the same handle',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'd', volumeHandle: 'h' } },
      true,
    ],
    [
      'PROV-12 returns true for the same handle with other attributes',
      { csi: { driver: 'd', volumeHandle: 'h', volumeAttributes: { identity: 'a' } } },
      { csi: { driver: 'd', volumeHandle: 'h', volumeAttributes: { identity: 'b' } } },
      true,
    ],
    [
      'PROV-12 returns false for another handle',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'd', volumeHandle: 'i' } },
      false,
    ],
    [
      'PROV-12 returns false for another driver',
      { csi: { driver: 'd', volumeHandle: 'h' } },
      { csi: { driver: 'e', volumeHandle: 'h' } },
      false,
    ],
    [
      'PROV-12 returns true for the same path with defaults of the API server',
      { hostPath: { path: '/x' } },
      { hostPath: { path: '/x', type: '' } },
      true,
    ],
    [
      'PROV-12 returns false for another path',
      { hostPath: { path: '/x' } },
      { hostPath: { path: '/y', type: '' } },
      false,
    ],
    [
      'PROV-12 returns false for another type of source',
      { hostPath: { path: '/x' } },
      { local: { path: '/x' } },
      false,
    ],
    ['PROV-12 returns false without a source', {}, {}, false],
  ])('%s', (_title, builtSpec, savedSpec, expected) => {
    expect(isSameStorage(aVolume(builtSpec), aVolume(savedSpec))).toBe(expected)
  })
})
