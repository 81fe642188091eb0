import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareQuantities } from '../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../api/selectors.ts'
import { createVolumeIndex } from '../controllers/binding/volume-index.ts'
import { type ChooseOptions, chooseVolume } from './choose-volume.ts'
import { aClaim, aVolume, type ClaimSample, fakeVolumeCache, type VolumeSample } from './claims-and-volumes.fixture.ts'
import { DELETION_REQUESTED } from './deletion-requested.ts'
import { type Claim, requirementsOf, type Volume } from './matching.ts'

function chosen(
  claim: ClaimSample,
  volumes: readonly VolumeSample[],
  choosing: ChooseOptions = {},
): string | undefined {
  const cache = fakeVolumeCache()
  const index = createVolumeIndex(cache.cache)
  index.follow(() => {})
  for (const volume of volumes) cache.put(aVolume(volume))
  const one = aClaim(claim)
  return chooseVolume(one, requirementsOf(one), index, choosing)?.metadata.name
}

const RWO = ['ReadWriteOnce']
const ROX = ['ReadOnlyMany']
const RWX = ['ReadWriteMany']
const inZone = (zone: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
  },
})

describe('choosing a volume', () => {
  it('PROV-4 gives a claim the smallest volume that fits, the first by name of equals', () => {
    const volumes = [
      { name: 'roomy', size: '100Gi' },
      { name: 'snug-b', size: '12Gi' },
      { name: 'snug-a', size: '12Gi' },
    ]
    expect(chosen({ size: '10Gi' }, volumes)).toBe('snug-a')
    expect(chosen({ size: '13Gi' }, volumes)).toBe('roomy')
    expect(chosen({ size: '101Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-5 a volume that was bound from its side before it was deleted is still the claim’s, any other is not', () => {
    const going = { claim: { name: 'c', uid: 'uid-c' }, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(chosen({}, [{ name: 'half', ...going, phase: 'Bound' }])).toBe('half')
    expect(chosen({}, [{ name: 'fresh', ...going, phase: 'Pending' }])).toBeUndefined()
    expect(chosen({}, [{ name: 'reserved', ...going, claim: { name: 'c' }, phase: 'Bound' }])).toBeUndefined()
  })

  it('PROV-4 offers nothing that is not available, is going, or is somebody’s', () => {
    for (const phase of ['Pending', 'Bound', 'Released', 'Failed', '']) expect(chosen({}, [{ phase }])).toBeUndefined()
    expect(chosen({}, [{ metadata: { deletionTimestamp: 'now' } }])).toBeUndefined()
    expect(chosen({}, [{ claim: { name: 'other' } }])).toBeUndefined()
  })

  it('PROV-4 takes the volume with the fewest access modes that has all that are asked for', () => {
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

  it('PROV-4 of equally many access modes the smaller volume is taken', () => {
    const volumes = [
      { name: 'a', modes: [...RWO, ...ROX], size: '5Gi' },
      { name: 'b', modes: [...RWO, ...RWX], size: '4Gi' },
    ]
    expect(chosen({ modes: RWO }, volumes)).toBe('b')
  })

  it('PROV-4 a claim with a class and one without never take each other’s volumes', () => {
    const volumes = [
      { name: 'classless', size: '1Gi' },
      { name: 'gold', size: '10Gi', className: 'gold' },
    ]
    expect(chosen({ className: 'gold' }, volumes)).toBe('gold')
    expect(chosen({ className: '' }, volumes)).toBe('classless')
    expect(chosen({}, volumes)).toBe('classless')
    expect(chosen({ size: '5Gi' }, volumes)).toBeUndefined()
  })

  it('PROV-4 a reserved volume is taken whatever its class, labels and phase, also before one that fits better', () => {
    const reserved = { name: 'mine', size: '10Gi', className: 'gold', claim: { name: 'c' }, phase: 'Pending' }
    const wish = { spec: { selector: { matchLabels: { a: 'b' } } } }
    expect(chosen(wish, [reserved, { name: 'free', labels: { a: 'b' } }])).toBe('mine')
    expect(chosen({}, [{ ...reserved, modes: [...RWO, ...RWX] }, { name: 'free' }])).toBe('mine')
  })

  it('PROV-4 a reserved volume that is too small, lacks a mode, or is of another volume mode is passed over', () => {
    const free = { name: 'free', size: '5Gi' }
    const mine = { name: 'mine', claim: { name: 'c' } }
    expect(chosen({ size: '2Gi' }, [mine, free])).toBe('free')
    expect(chosen({}, [{ ...mine, modes: RWX }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, spec: { volumeMode: 'Block' } }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, metadata: { deletionTimestamp: 'now' } }, free])).toBe('free')
    expect(chosen({}, [{ ...mine, claim: { name: 'c', uid: 'another' } }, free])).toBe('free')
  })

  it('PROV-5 of two reserved volumes the one that already has the claim’s uid is taken', () => {
    const volumes = [
      { name: 'a', claim: { name: 'c' } },
      { name: 'b', size: '9Gi', claim: { name: 'c', uid: 'uid-c' } },
    ]
    expect(chosen({}, volumes)).toBe('b')
  })

  it('VAC-4 attributes classes must be the same, also on a reserved volume; none and empty are', () => {
    const gold = { name: 'gold', spec: { volumeAttributesClassName: 'gold' } }
    const wantsGold = { spec: { volumeAttributesClassName: 'gold' } }
    expect(chosen(wantsGold, [{ name: 'plain' }, gold])).toBe('gold')
    expect(chosen({}, [gold])).toBeUndefined()
    expect(chosen({ spec: { volumeAttributesClassName: '' } }, [gold, { name: 'plain' }])).toBe('plain')
    expect(chosen({}, [{ ...gold, claim: { name: 'c' } }])).toBeUndefined()
  })

  it('PROV-14 one whose storage was asked to delete it is nobody’s, not even reserved', () => {
    const annotations = { [DELETION_REQUESTED]: '2026-01-01T00:00:00Z' }
    expect(chosen({}, [{ annotations }])).toBeUndefined()
    expect(chosen({}, [{ annotations, claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(
      chosen({}, [
        { name: 'condemned', annotations },
        { name: 'free', size: '100Gi' },
      ]),
    ).toBe('free')
  })

  it('VAC-12 a volume that was made for the claim without attributes is its own; one that was only reserved is not', () => {
    const wantsGold = { spec: { volumeAttributesClassName: 'gold' } }
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'd.example.com' }
    const made = { annotations, claim: { name: 'c', uid: 'uid-c' } }
    expect(chosen(wantsGold, [made])).toBe('pv')
    expect(chosen(wantsGold, [{ ...made, claim: { name: 'c' } }])).toBeUndefined()
    expect(chosen(wantsGold, [{ claim: { name: 'c', uid: 'uid-c' } }])).toBeUndefined()
    expect(chosen(wantsGold, [{ ...made, spec: { volumeAttributesClassName: 'silver' } }])).toBeUndefined()
  })

  it('PROV-4 an absent volume mode means Filesystem', () => {
    expect(chosen({ spec: { volumeMode: 'Filesystem' } }, [{}])).toBe('pv')
    expect(chosen({}, [{ spec: { volumeMode: 'Block' } }])).toBeUndefined()
    expect(chosen({ spec: { volumeMode: 'Block' } }, [{ spec: { volumeMode: 'Block' } }])).toBe('pv')
  })

  it('PROV-4 sizes are exact beyond what a number can hold', () => {
    expect(chosen({ size: '800E' }, [{ size: '800E' }])).toBe('pv')
    expect(chosen({ size: '950E' }, [{ size: '800E' }])).toBeUndefined()
    expect(chosen({ size: '9007199254740993' }, [{ size: '9007199254740992' }])).toBeUndefined()
  })

  it('PROV-4 a claim that waits for a pod takes only what is reserved for it', () => {
    expect(chosen({}, [{ name: 'free' }], { isDelayed: true })).toBeUndefined()
    expect(chosen({}, [{ name: 'free' }, { name: 'mine', claim: { name: 'c' } }], { isDelayed: true })).toBe('mine')
  })

  it('PROV-4 for a node, only volumes it can reach; a reserved one that it cannot reach rules the node out', () => {
    const node = { name: 'n', labels: { zone: 'a' } }
    const volumes = [
      { name: 'far', spec: inZone('b') },
      { name: 'near', size: '2Gi', spec: inZone('a') },
    ]
    expect(chosen({}, volumes, { node, isDelayed: true })).toBe('near')
    const mine = { name: 'mine', claim: { name: 'c' }, spec: { ...inZone('b') } }
    expect(chosen({}, [...volumes, mine], { node })).toBeUndefined()
  })

  it('PROV-4 what is excluded is left for others', () => {
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

  it('PROV-4 chooses what looking at every volume would choose, whatever there is', () => {
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
          const choosing = { isDelayed, excluded, ...(node ? { node } : {}) }
          const expected = byLookingAtAll(aClaim(claim as ClaimSample), volumes.map(aVolume), choosing)
          expect(chosen(claim as ClaimSample, volumes, choosing)).toBe(expected)
        },
      ),
      { numRuns: 500 },
    )
  })
})

/** The same rule, written as a table of reasons to pass a volume over, with nothing shared with what it checks. */
function byLookingAtAll(claim: Claim, volumes: readonly Volume[], { isDelayed, node, excluded }: ChooseOptions) {
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
