import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareQuantities } from '../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../api/selectors.ts'
import { createVolumeIndex } from '../controllers/binding/volume-index.ts'
import { type ChooseOptions, chooseVolume } from './choose-volume.ts'
import { aClaim, aVolume, type ClaimSample, fakeVolumeCache, type VolumeSample } from './claims-and-volumes.fixture.ts'
import { DELETION_REQUESTED_ANNOTATION } from './deletion-requested.ts'
import { type Claim, requirementsOf, type Volume } from './matching.ts'

function chosen(claim: ClaimSample, volumes: readonly VolumeSample[], options: ChooseOptions = {}): string | undefined {
  const cache = fakeVolumeCache()
  const index = createVolumeIndex(cache.cache)
  index.follow(() => {})
  for (const volume of volumes) cache.put(aVolume(volume))
  const one = aClaim(claim)
  return chooseVolume(one, requirementsOf(one), index, options)?.metadata.name
}

const RWO = ['ReadWriteOnce']
const ROX = ['ReadOnlyMany']
const RWX = ['ReadWriteMany']
const inZone = (zone: string) => ({
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
    expect(chosen({ size: '10Gi' }, volumes)).toBe('snug-a')
    expect(chosen({ size: '13Gi' }, volumes)).toBe('roomy')
    expect(chosen({ size: '101Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-5 chooses a volume being deleted only if it was already bound on its side', () => {
    const deleted = { claim: { name: 'c', uid: 'uid-c' }, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(chosen({}, [{ name: 'half', ...deleted, phase: 'Bound' }])).toBe('half')
    expect(chosen({}, [{ name: 'fresh', ...deleted, phase: 'Pending' }])).toBeUndefined()
    expect(chosen({}, [{ name: 'reserved', ...deleted, claim: { name: 'c' }, phase: 'Bound' }])).toBeUndefined()
  })

  it('PROV-4 never chooses a volume that is not Available, is being deleted or has another claimRef', () => {
    for (const phase of ['Pending', 'Bound', 'Released', 'Failed', '']) expect(chosen({}, [{ phase }])).toBeUndefined()
    expect(chosen({}, [{ metadata: { deletionTimestamp: 'now' } }])).toBeUndefined()
    expect(chosen({}, [{ claim: { name: 'other' } }])).toBeUndefined()
  })

  it('PROV-4 chooses the volume with the fewest access modes that include those requested', () => {
    const volumes = [
      { name: 'three', modes: [...RWO, ...ROX, ...RWX] },
      { name: 'two', modes: [...RWO, ...ROX], size: '5Gi' },
      { name: 'one', modes: RWO, size: '10Gi' },
    ]
    expect(chosen({ modes: RWO }, volumes)).toBe('one')
    expect(chosen({ modes: RWO }, volumes.slice(0, 2))).toBe('two')
    expect(chosen({ modes: RWO }, volumes.slice(0, 1))).toBe('three')
    expect(chosen({ modes: ROX }, volumes)).toBe('two')
    expect(chosen({ modes: [...ROX, ...RWO] }, volumes)).toBe('two')
    expect(chosen({ modes: ['ReadWriteOncePod'] }, volumes)).toBeUndefined()
  })

  it('PROV-4 chooses the smaller of two volumes with equally many access modes', () => {
    const volumes = [
      { name: 'a', modes: [...RWO, ...ROX], size: '5Gi' },
      { name: 'b', modes: [...RWO, ...RWX], size: '4Gi' },
    ]
    expect(chosen({ modes: RWO }, volumes)).toBe('b')
  })

  it('PROV-4 never matches a claim with a class to a volume without one, or the reverse', () => {
    const volumes = [
      { name: 'classless', size: '1Gi' },
      { name: 'gold', size: '10Gi', className: 'gold' },
    ]
    expect(chosen({ className: 'gold' }, volumes)).toBe('gold')
    expect(chosen({ className: '' }, volumes)).toBe('classless')
    expect(chosen({}, volumes)).toBe('classless')
    expect(chosen({ size: '5Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-4 prefers a reserved volume, regardless of its class, labels and phase', () => {
    const reserved = { name: 'mine', size: '10Gi', className: 'gold', claim: { name: 'c' }, phase: 'Pending' }
    const withSelector = { spec: { selector: { matchLabels: { a: 'b' } } } }
    expect(chosen(withSelector, [reserved, { name: 'free', labels: { a: 'b' } }])).toBe('mine')
    expect(chosen({}, [{ ...reserved, modes: [...RWO, ...RWX] }, { name: 'free' }])).toBe('mine')
  })

  it('PROV-4 skips a reserved volume that is too small, lacks an access mode or has another volume mode', () => {
    const free = { name: 'free', size: '5Gi' }
    const mine = { name: 'mine', claim: { name: 'c' } }
    expect(chosen({ size: '2Gi' }, [mine, free])).toBe('free')
    expect(chosen({}, [{ ...mine, modes: RWX }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, spec: { volumeMode: 'Block' } }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, metadata: { deletionTimestamp: 'now' } }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, claim: { name: 'c', uid: 'another' } }, free])).toBe('free')
  })

  it('PROV-5 prefers the reserved volume whose claimRef has the uid of the claim', () => {
    const volumes = [
      { name: 'a', claim: { name: 'c' } },
      { name: 'b', size: '9Gi', claim: { name: 'c', uid: 'uid-c' } },
    ]
    expect(chosen({}, volumes)).toBe('b')
  })

  it('VAC-4 requires equal attributes classes, also on a reserved volume; absent equals empty', () => {
    const gold = { name: 'gold', spec: { volumeAttributesClassName: 'gold' } }
    const wantsGold = { spec: { volumeAttributesClassName: 'gold' } }
    expect(chosen(wantsGold, [{ name: 'plain' }, gold])).toBe('gold')
    expect(chosen({}, [gold])).toBeUndefined()
    expect(chosen({ spec: { volumeAttributesClassName: '' } }, [gold, { name: 'plain' }])).toBe('plain')
    expect(chosen({}, [{ ...gold, claim: { name: 'c' } }])).toBeUndefined()
  })

  it('PROV-14 never chooses a volume whose deletion was requested, not even a reserved one', () => {
    const annotations = { [DELETION_REQUESTED_ANNOTATION]: '2026-01-01T00:00:00Z' }
    expect(chosen({}, [{ annotations }])).toBeUndefined()
    expect(chosen({}, [{ annotations, claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(
      chosen({}, [
        { name: 'deleting', annotations },
        { name: 'free', size: '100Gi' },
      ]),
    ).toBe('free')
  })

  it('VAC-12 chooses a volume provisioned for the claim without attributes, but not one merely reserved', () => {
    const wantsGold = { spec: { volumeAttributesClassName: 'gold' } }
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'd.example.com' }
    const provisioned = { annotations, claim: { name: 'c', uid: 'uid-c' } }
    expect(chosen(wantsGold, [provisioned])).toBe('pv')
    expect(chosen(wantsGold, [{ ...provisioned, claim: { name: 'c' } }])).toBeUndefined()
    expect(chosen(wantsGold, [{ claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(chosen(wantsGold, [{ ...provisioned, spec: { volumeAttributesClassName: 'silver' } }])).toBeUndefined()
  })

  it('PROV-4 treats an absent volume mode as Filesystem', () => {
    expect(chosen({ spec: { volumeMode: 'Filesystem' } }, [{}])).toBe('pv')
    expect(chosen({}, [{ spec: { volumeMode: 'Block' } }])).toBeUndefined()
    expect(chosen({ spec: { volumeMode: 'Block' } }, [{ spec: { volumeMode: 'Block' } }])).toBe('pv')
  })

  it('PROV-4 compares sizes beyond 2^53 exactly', () => {
    expect(chosen({ size: '800E' }, [{ size: '800E' }])).toBe('pv')
    expect(chosen({ size: '950E' }, [{ size: '800E' }])).toBeUndefined()
    expect(chosen({ size: '9007199254740993' }, [{ size: '9007199254740992' }])).toBeUndefined()
  })

  it('PROV-4 chooses only a reserved volume for a claim that waits for a pod', () => {
    expect(chosen({}, [{ name: 'free' }], { isDelayed: true })).toBeUndefined()
    expect(chosen({}, [{ name: 'free' }, { name: 'mine', claim: { name: 'c' } }], { isDelayed: true })).toBe('mine')
  })

  it('PROV-4 chooses only volumes that the node can reach, and none if it cannot reach a reserved one', () => {
    const node = { name: 'n', labels: { zone: 'a' } }
    const volumes = [
      { name: 'far', spec: inZone('b') },
      { name: 'near', size: '2Gi', spec: inZone('a') },
    ]
    expect(chosen({}, volumes, { node, isDelayed: true })).toBe('near')
    const mine = { name: 'mine', claim: { name: 'c' }, spec: { ...inZone('b') } }
    expect(chosen({}, [...volumes, mine], { node })).toBeUndefined()
  })

  it('PROV-4 skips excluded volumes', () => {
    const volumes = [{ name: 'small' }, { name: 'large', size: '2Gi' }]
    const node = { name: 'n', labels: {} }
    expect(chosen({}, volumes, { node, excluded: new Set(['small']) })).toBe('large')
  })

  const zones = fc.constantFrom('a', 'b')
  const modeSets = fc.subarray(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'], { minLength: 1 })
  const sizes = fc.constantFrom('1Gi', '1025Mi', '2Gi', '2147483649', '3G')
  const labels = fc.constantFrom({}, { tier: 'x' }, { tier: 'y' })
  const classes = fc.constantFrom(undefined, '', 'gold')
  const volumeMode = fc.constantFrom(undefined, 'Filesystem', 'Block')
  const attributes = fc.constantFrom(undefined, 'fast')
  const optional = (parts: object) =>
    Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined))
  const volumeSamples = fc.array(
    fc
      .record({
        size: sizes,
        modes: modeSets,
        className: classes,
        volumeMode,
        attributes,
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
        isGoing: fc.constantFrom(false, false, false, true),
      })
      .map(({ volumeMode, attributes, zone, isGoing, claim, className, ...rest }) => ({
        ...rest,
        ...optional({ claim, className }),
        spec: {
          ...optional({ volumeMode, volumeAttributesClassName: attributes }),
          ...(zone ? inZone(zone) : {}),
        },
        metadata: isGoing ? { deletionTimestamp: 'now' } : {},
      })),
    { maxLength: 12 },
  )
  const claimSample = fc
    .record({
      size: sizes,
      modes: fc.subarray(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'], { minLength: 1, maxLength: 2 }),
      className: classes,
      volumeMode,
      attributes,
      selector: fc.constantFrom(undefined, { matchLabels: { tier: 'x' } }),
    })
    .map(({ volumeMode, attributes, selector, className, ...rest }) => ({
      ...rest,
      ...optional({ className }),
      spec: optional({ volumeMode, volumeAttributesClassName: attributes, selector }),
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
          const volumes = samples.map((sample, at) => ({ ...sample, name: `v${at}` }) as VolumeSample)
          const excluded = new Set(excludedNames)
          const node = zone === undefined ? undefined : { name: 'n', labels: { zone } }
          const options = { isDelayed, excluded, ...(node ? { node } : {}) }
          const expected = chosenByScan(aClaim(claim as ClaimSample), volumes.map(aVolume), options)
          expect(chosen(claim as ClaimSample, volumes, options)).toBe(expected)
        },
      ),
      { numRuns: 500 },
    )
  })
})

/** The same rule as a plain scan that shares no code with chooseVolume. */
function chosenByScan(claim: Claim, volumes: readonly Volume[], { isDelayed, node, excluded }: ChooseOptions) {
  const wanted = claim.spec!
  const fits = ({ metadata, spec = {} }: Volume): boolean =>
    !excluded?.has(metadata.name!) &&
    !metadata.deletionTimestamp &&
    compareQuantities(spec.capacity!.storage!, wanted.resources!.requests!.storage!) >= 0 &&
    wanted.accessModes!.every((mode) => spec.accessModes!.includes(mode)) &&
    (spec.volumeMode ?? 'Filesystem') === (wanted.volumeMode ?? 'Filesystem') &&
    (spec.volumeAttributesClassName ?? '') === (wanted.volumeAttributesClassName ?? '')
  const reaches = ({ spec }: Volume): boolean => {
    const zone = spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values?.[0]
    return !node || zone === undefined || node.labels.zone === zone
  }
  const order = (a: Volume, b: Volume) =>
    a.spec!.accessModes!.length - b.spec!.accessModes!.length ||
    compareQuantities(a.spec!.capacity!.storage!, b.spec!.capacity!.storage!) ||
    (a.metadata.name! < b.metadata.name! ? -1 : 1)
  const mine = volumes.filter(({ spec }) => spec?.claimRef?.name === 'c' && !spec.claimRef.uid).filter(fits)
  if (mine.length > 0) {
    const [first] = mine.sort(order)
    return reaches(first!) ? first!.metadata.name : undefined
  }
  if (isDelayed && !node) return undefined
  const free = volumes.filter(
    (volume) =>
      fits(volume) &&
      reaches(volume) &&
      volume.status?.phase === 'Available' &&
      !volume.spec?.claimRef &&
      (volume.spec?.storageClassName ?? '') === (wanted.storageClassName ?? '') &&
      (!wanted.selector || matchesLabels(labelSelectorFromObject(wanted.selector), volume.metadata.labels)),
  )
  return free.sort(order)[0]?.metadata.name
}
