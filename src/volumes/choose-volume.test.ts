import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareQuantities } from '../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../api/selectors.ts'
import { createVolumeIndex } from '../controllers/binding/volume-index.ts'
import { type ChooseOptions, chooseVolume } from './choose-volume.ts'
import { aClaim, aVolume, type ClaimSample, fakeVolumeCache, type VolumeSample } from './claims-and-volumes.fixture.ts'
import { DELETION_REQUESTED_ANNOTATION } from './deletion-requested.ts'
import { type Claim, requirementsOf, type Volume } from './matching.ts'
import { BOUND_BY_CONTROLLER } from './names.ts'

function chosenName(
  claim: ClaimSample,
  volumes: readonly VolumeSample[],
  options: ChooseOptions = {},
): string | undefined {
  const cache = fakeVolumeCache()
  const index = createVolumeIndex(cache.cache)
  index.follow(() => {})
  for (const volume of volumes) cache.put(aVolume(volume))
  const storedClaim = aClaim(claim)
  return chooseVolume(storedClaim, requirementsOf(storedClaim), index, options)?.metadata.name
}

const RWO = ['ReadWriteOnce']
const ROX = ['ReadOnlyMany']
const RWX = ['ReadWriteMany']
const zoneAffinity = (zone: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
  },
})

describe('chooseVolume', () => {
  it('PROV-4 chooses the smallest volume that fits, and the first by name among equals', () => {
    const volumes = [
      { name: 'roomy', size: '100Gi' },
      { name: 'snug-b', size: '12Gi' },
      { name: 'snug-a', size: '12Gi' },
    ]
    expect(chosenName({ size: '10Gi' }, volumes)).toBe('snug-a')
    expect(chosenName({ size: '13Gi' }, volumes)).toBe('roomy')
    expect(chosenName({ size: '101Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-5 chooses a volume being deleted only if the volume is already bound to the claim', () => {
    const deletedVolume = {
      claim: { name: 'c', uid: 'uid-c' },
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
    }
    expect(chosenName({}, [{ name: 'half-bound', ...deletedVolume, phase: 'Bound' }])).toBe('half-bound')
    expect(chosenName({}, [{ name: 'pending', ...deletedVolume, phase: 'Pending' }])).toBeUndefined()
    expect(
      chosenName({}, [{ name: 'reserved', ...deletedVolume, claim: { name: 'c' }, phase: 'Bound' }]),
    ).toBeUndefined()
  })

  it('PROV-4 never chooses a free volume that is not Available or is being deleted, nor a volume of another claim', () => {
    for (const phase of ['Pending', 'Bound', 'Released', 'Failed', ''])
      expect(chosenName({}, [{ phase }])).toBeUndefined()
    expect(chosenName({}, [{ metadata: { deletionTimestamp: 'now' } }])).toBeUndefined()
    expect(chosenName({}, [{ claim: { name: 'other' } }])).toBeUndefined()
  })

  it('PROV-4 chooses a smaller volume with more access modes before a larger one with fewer', () => {
    const volumes = [
      { name: 'large', modes: RWO, size: '500Gi' },
      { name: 'small', modes: [...RWO, ...ROX], size: '3Gi' },
    ]
    expect(chosenName({ size: '2Gi', modes: RWO }, volumes)).toBe('small')
    const reservedVolumes = volumes.map((volume) => ({ ...volume, claim: { name: 'c' } }))
    expect(chosenName({ size: '2Gi', modes: RWO }, reservedVolumes)).toBe('small')
  })

  it('PROV-4 chooses among equal sizes the volume with the fewest access modes that include the requested modes', () => {
    const volumes = [
      { name: 'three', modes: [...RWO, ...ROX, ...RWX] },
      { name: 'two', modes: [...RWO, ...ROX] },
      { name: 'one', modes: RWO },
    ]
    expect(chosenName({ modes: RWO }, volumes)).toBe('one')
    expect(chosenName({ modes: RWO }, volumes.slice(0, 2))).toBe('two')
    expect(chosenName({ modes: RWO }, volumes.slice(0, 1))).toBe('three')
    expect(chosenName({ modes: ROX }, volumes)).toBe('two')
    expect(chosenName({ modes: [...ROX, ...RWO] }, volumes)).toBe('two')
    expect(chosenName({ modes: ['ReadWriteOncePod'] }, volumes)).toBeUndefined()
  })

  it('PROV-4 chooses the smaller of two volumes with the same number of access modes', () => {
    const volumes = [
      { name: 'a', modes: [...RWO, ...ROX], size: '5Gi' },
      { name: 'b', modes: [...RWO, ...RWX], size: '4Gi' },
    ]
    expect(chosenName({ modes: RWO }, volumes)).toBe('b')
  })

  it('PROV-4 does not choose a free volume of another class, and treats an absent class as empty', () => {
    const volumes = [
      { name: 'classless', size: '1Gi' },
      { name: 'gold', size: '10Gi', className: 'gold' },
    ]
    expect(chosenName({ className: 'gold' }, volumes)).toBe('gold')
    expect(chosenName({ className: '' }, volumes)).toBe('classless')
    expect(chosenName({}, volumes)).toBe('classless')
    expect(chosenName({ size: '5Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-4 prefers a reserved volume even if only the volume has a class, its labels do not match, or it is Pending', () => {
    const reservedVolume = { name: 'reserved', size: '10Gi', className: 'gold', claim: { name: 'c' }, phase: 'Pending' }
    const claimWithSelector = { spec: { selector: { matchLabels: { a: 'b' } } } }
    expect(chosenName(claimWithSelector, [reservedVolume, { name: 'free', labels: { a: 'b' } }])).toBe('reserved')
    expect(chosenName({}, [{ ...reservedVolume, modes: [...RWO, ...RWX] }, { name: 'free' }])).toBe('reserved')
  })

  it('PROV-4 does not choose a classless volume for a claim with a class, unless a controller has bound it', () => {
    const reservedVolume = { name: 'reserved', claim: { name: 'c' } }
    const boundByController = { annotations: { [BOUND_BY_CONTROLLER]: 'yes' }, claim: { name: 'c', uid: 'uid-c' } }
    expect(chosenName({ className: 'gold' }, [{ name: 'free' }])).toBeUndefined()
    expect(chosenName({ className: 'gold' }, [{ ...reservedVolume, ...boundByController }])).toBe('reserved')
    expect(chosenName({ className: 'gold' }, [reservedVolume])).toBeUndefined()
    expect(
      chosenName({ className: 'gold' }, [{ ...reservedVolume, claim: { name: 'c', uid: 'uid-c' } }]),
    ).toBeUndefined()
    expect(chosenName({ className: 'gold' }, [reservedVolume, { name: 'free', className: 'gold' }])).toBe('free')
    expect(chosenName({ className: '' }, [reservedVolume])).toBe('reserved')
    expect(chosenName({}, [reservedVolume])).toBe('reserved')
  })

  it('PROV-4 skips a reserved volume that does not match, is being deleted before it is bound, or names another uid', () => {
    const freeVolume = { name: 'free', size: '5Gi' }
    const reservedVolume = { name: 'reserved', claim: { name: 'c' } }
    expect(chosenName({ size: '2Gi' }, [reservedVolume, freeVolume])).toBe('free')
    expect(chosenName({}, [{ ...reservedVolume, modes: RWX }, freeVolume])).toBe('free')
    expect(chosenName({}, [{ ...reservedVolume, spec: { volumeMode: 'Block' } }, freeVolume])).toBe('free')
    expect(chosenName({}, [{ ...reservedVolume, metadata: { deletionTimestamp: 'now' } }, freeVolume])).toBe('free')
    expect(chosenName({}, [{ ...reservedVolume, claim: { name: 'c', uid: 'another' } }, freeVolume])).toBe('free')
  })

  it("PROV-5 prefers the reserved volume whose claimRef has the claim's uid", () => {
    const volumes = [
      { name: 'a', claim: { name: 'c' } },
      { name: 'b', size: '9Gi', claim: { name: 'c', uid: 'uid-c' } },
    ]
    expect(chosenName({}, volumes)).toBe('b')
  })

  it('VAC-4 skips a volume of another attributes class, and treats an absent class as empty', () => {
    const gold = { name: 'gold', spec: { volumeAttributesClassName: 'gold' } }
    const goldClaim = { spec: { volumeAttributesClassName: 'gold' } }
    expect(chosenName(goldClaim, [{ name: 'plain' }, gold])).toBe('gold')
    expect(chosenName({}, [gold])).toBeUndefined()
    expect(chosenName({ spec: { volumeAttributesClassName: '' } }, [gold, { name: 'plain' }])).toBe('plain')
    expect(chosenName({}, [{ ...gold, claim: { name: 'c' } }])).toBeUndefined()
  })

  it('never chooses a volume whose deletion was requested, not even a reserved one', () => {
    const annotations = { [DELETION_REQUESTED_ANNOTATION]: '2026-01-01T00:00:00Z' }
    expect(chosenName({}, [{ annotations }])).toBeUndefined()
    expect(chosenName({}, [{ annotations, claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(
      chosenName({}, [
        { name: 'deleting', annotations },
        { name: 'free', size: '100Gi' },
      ]),
    ).toBe('free')
  })

  it('ignores an absent attributes class only on a volume that was provisioned for the claim', () => {
    const goldClaim = { spec: { volumeAttributesClassName: 'gold' } }
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'd.example.com' }
    const provisionedVolume = { annotations, claim: { name: 'c', uid: 'uid-c' } }
    expect(chosenName(goldClaim, [provisionedVolume])).toBe('pv')
    expect(chosenName(goldClaim, [{ ...provisionedVolume, claim: { name: 'c' } }])).toBeUndefined()
    expect(chosenName(goldClaim, [{ claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(
      chosenName(goldClaim, [{ ...provisionedVolume, spec: { volumeAttributesClassName: 'silver' } }]),
    ).toBeUndefined()
  })

  const ioCapacity = (io: Record<string, string>, size = '1Gi') => ({ capacity: { storage: size, ...io } })
  const claimWithIo = (io: Record<string, string>) => ({ spec: { resources: { requests: { storage: '1Gi', ...io } } } })

  it('PROV-4 PIO-1 skips a volume that provides less iops or throughput than the claim requests, including a reserved one', () => {
    const slow = { name: 'slow', spec: ioCapacity({ iops: '100', throughput: '10Mi' }) }
    const fast = { name: 'fast', spec: ioCapacity({ iops: '3k', throughput: '200Mi' }, '5Gi') }
    expect(chosenName({}, [fast, slow])).toBe('slow')
    expect(chosenName(claimWithIo({ iops: '100', throughput: '10' }), [fast, slow])).toBe('slow')
    expect(chosenName(claimWithIo({ iops: '101' }), [fast, slow])).toBe('fast')
    expect(chosenName(claimWithIo({ throughput: '11' }), [fast, slow])).toBe('fast')
    expect(chosenName(claimWithIo({ iops: '3001' }), [fast, slow])).toBeUndefined()
    expect(chosenName(claimWithIo({ iops: '101' }), [{ ...slow, claim: { name: 'c' } }])).toBeUndefined()
  })

  it("PROV-4 PIO-1 ignores requested iops or throughput that the volume's capacity does not list", () => {
    expect(chosenName(claimWithIo({ iops: '3k', throughput: '200' }), [{}])).toBe('pv')
    expect(chosenName(claimWithIo({ throughput: '200' }), [{ spec: ioCapacity({ iops: '1' }) }])).toBe('pv')
  })

  it('PROV-4 treats an absent volume mode as Filesystem', () => {
    expect(chosenName({ spec: { volumeMode: 'Filesystem' } }, [{}])).toBe('pv')
    expect(chosenName({}, [{ spec: { volumeMode: 'Block' } }])).toBeUndefined()
    expect(chosenName({ spec: { volumeMode: 'Block' } }, [{ spec: { volumeMode: 'Block' } }])).toBe('pv')
  })

  it('PROV-4 compares sizes beyond 2^53 exactly', () => {
    expect(chosenName({ size: '800E' }, [{ size: '800E' }])).toBe('pv')
    expect(chosenName({ size: '950E' }, [{ size: '800E' }])).toBeUndefined()
    expect(chosenName({ size: '9007199254740993' }, [{ size: '9007199254740992' }])).toBeUndefined()
  })

  it('PROV-4 chooses only a reserved volume for a claim that waits for its first consumer', () => {
    expect(chosenName({}, [{ name: 'free' }], { isDelayed: true })).toBeUndefined()
    expect(chosenName({}, [{ name: 'free' }, { name: 'reserved', claim: { name: 'c' } }], { isDelayed: true })).toBe(
      'reserved',
    )
  })

  it('PROV-4 chooses only volumes that the node can reach, and none if it cannot reach the reserved volume', () => {
    const node = { name: 'n', labels: { zone: 'a' } }
    const volumes = [
      { name: 'far', spec: zoneAffinity('b') },
      { name: 'near', size: '2Gi', spec: zoneAffinity('a') },
    ]
    expect(chosenName({}, volumes, { node, isDelayed: true })).toBe('near')
    const reservedVolume = { name: 'reserved', claim: { name: 'c' }, spec: { ...zoneAffinity('b') } }
    expect(chosenName({}, [...volumes, reservedVolume], { node })).toBeUndefined()
  })

  it('PROV-4 skips excluded volumes', () => {
    const volumes = [{ name: 'small' }, { name: 'large', size: '2Gi' }]
    const node = { name: 'n', labels: {} }
    expect(chosenName({}, volumes, { node, excluded: new Set(['small']) })).toBe('large')
  })

  const zones = fc.constantFrom('a', 'b')
  const modeSets = fc.subarray(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'], { minLength: 1 })
  const sizes = fc.constantFrom('1Gi', '1025Mi', '2Gi', '2147483649', '3G')
  const labels = fc.constantFrom({}, { tier: 'x' }, { tier: 'y' })
  const classes = fc.constantFrom(undefined, '', 'gold')
  const volumeModes = fc.constantFrom(undefined, 'Filesystem', 'Block')
  const attributesClasses = fc.constantFrom(undefined, 'fast')
  const omitUndefined = (fields: object) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const volumeSamples = fc.array(
    fc
      .record({
        size: sizes,
        modes: modeSets,
        className: classes,
        volumeMode: volumeModes,
        attributes: attributesClasses,
        labels,
        zone: fc.option(zones, { nil: undefined }),
        phase: fc.constantFrom('Available', 'Available', 'Released'),
        claim: fc.constantFrom(
          undefined,
          undefined,
          undefined,
          { name: 'c' },
          { name: 'c', uid: 'old' },
          { name: 'd' },
        ),
        isBeingDeleted: fc.constantFrom(false, false, false, true),
      })
      .map(({ volumeMode, attributes, zone, isBeingDeleted, claim, className, ...otherFields }) => ({
        ...otherFields,
        ...omitUndefined({ claim, className }),
        spec: {
          ...omitUndefined({ volumeMode, volumeAttributesClassName: attributes }),
          ...(zone ? zoneAffinity(zone) : {}),
        },
        metadata: isBeingDeleted ? { deletionTimestamp: 'now' } : {},
      })),
    { maxLength: 12 },
  )
  const claimSample = fc
    .record({
      size: sizes,
      modes: fc.subarray(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'], { minLength: 1, maxLength: 2 }),
      className: classes,
      volumeMode: volumeModes,
      attributes: attributesClasses,
      selector: fc.constantFrom(undefined, { matchLabels: { tier: 'x' } }),
    })
    .map(({ volumeMode, attributes, selector, className, ...otherFields }) => ({
      ...otherFields,
      ...omitUndefined({ className }),
      spec: omitUndefined({ volumeMode, volumeAttributesClassName: attributes, selector }),
    }))

  it('PROV-4 chooses the same volume as a scan of all volumes', () => {
    fc.assert(
      fc.property(
        claimSample,
        volumeSamples,
        fc.boolean(),
        fc.option(zones, { nil: undefined }),
        fc.subarray(['v0', 'v1', 'v2']),
        (claim, samples, isDelayed, zone, excludedNames) => {
          const volumes = samples.map((sample, index) => ({ ...sample, name: `v${index}` }) as VolumeSample)
          const excluded = new Set(excludedNames)
          const node = zone === undefined ? undefined : { name: 'n', labels: { zone } }
          const options = { isDelayed, excluded, ...(node ? { node } : {}) }
          const expectedVolume = chooseByScan(aClaim(claim as ClaimSample), volumes.map(aVolume), options)
          expect(chosenName(claim as ClaimSample, volumes, options)).toBe(expectedVolume)
        },
      ),
      { numRuns: 500 },
    )
  })
})

/** Chooses a volume by a scan of all volumes, without an index. */
function chooseByScan(claim: Claim, volumes: readonly Volume[], { isDelayed, node, excluded }: ChooseOptions) {
  const claimSpec = claim.spec!
  const meetsSpec = ({ metadata, spec = {} }: Volume): boolean =>
    !excluded?.has(metadata.name!) &&
    !metadata.deletionTimestamp &&
    compareQuantities(spec.capacity!.storage!, claimSpec.resources!.requests!.storage!) >= 0 &&
    claimSpec.accessModes!.every((mode) => spec.accessModes!.includes(mode)) &&
    (spec.volumeMode ?? 'Filesystem') === (claimSpec.volumeMode ?? 'Filesystem') &&
    (spec.volumeAttributesClassName ?? '') === (claimSpec.volumeAttributesClassName ?? '')
  const isReachable = ({ spec }: Volume): boolean => {
    const zone = spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values?.[0]
    return !node || zone === undefined || node.labels.zone === zone
  }
  const compareFit = (a: Volume, b: Volume) =>
    compareQuantities(a.spec!.capacity!.storage!, b.spec!.capacity!.storage!) ||
    a.spec!.accessModes!.length - b.spec!.accessModes!.length ||
    (a.metadata.name! < b.metadata.name! ? -1 : 1)
  const isOnlyForClassless = ({ spec }: Volume) => !spec?.storageClassName && Boolean(claimSpec.storageClassName)
  const reservedVolumes = volumes.filter(
    (volume) =>
      volume.spec?.claimRef?.name === 'c' &&
      !volume.spec.claimRef.uid &&
      !isOnlyForClassless(volume) &&
      meetsSpec(volume),
  )
  if (reservedVolumes.length > 0) {
    const [first] = reservedVolumes.sort(compareFit)
    return isReachable(first!) ? first!.metadata.name : undefined
  }
  if (isDelayed && !node) return undefined
  const freeVolumes = volumes.filter(
    (volume) =>
      meetsSpec(volume) &&
      isReachable(volume) &&
      volume.status?.phase === 'Available' &&
      !volume.spec?.claimRef &&
      (volume.spec?.storageClassName ?? '') === (claimSpec.storageClassName ?? '') &&
      (!claimSpec.selector || matchesLabels(labelSelectorFromObject(claimSpec.selector), volume.metadata.labels)),
  )
  return freeVolumes.sort(compareFit)[0]?.metadata.name
}
