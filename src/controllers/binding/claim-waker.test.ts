import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseVolume, meetsRequirements } from '../../volumes/choose-volume.ts'
import {
  aClaim,
  aVolume,
  type ClaimSample,
  fakeVolumeCache,
  type VolumeSample,
} from '../../volumes/claims-and-volumes.fixture.ts'
import { candidateOf, requirementsOf } from '../../volumes/matching.ts'
import { createClaimWaker } from './claim-waker.ts'
import { createVolumeIndex } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'

/** Creates a waker with a fake volume cache and a queue that reconciles one claim at a time. */
function createHarness() {
  const volumes = fakeVolumeCache()
  const index = createVolumeIndex(volumes.cache)
  const queuedKeys: string[] = []
  const waker = createClaimWaker(index, (key) => void queuedKeys.push(key))
  waker.start()
  const volumeByClaim = new Map<string, string>()
  const claims = new Map<string, ClaimSample & { readonly waitingSince?: string }>()
  let reconciles = 0

  function reconcile(key: string): void {
    reconciles++
    waker.reconcileStarted(key)
    const sample = claims.get(key)
    if (sample && !volumeByClaim.has(key)) {
      const claim = aClaim(sample)
      const volume = chooseVolume(claim, requirementsOf(claim), index)
      if (!volume) waker.addWaiting(requirementsOf(claim), sample.waitingSince ?? '')
      else {
        const { name } = volume.metadata
        index.assume(name)
        volumeByClaim.set(key, name)
        volumes.put({
          ...volume,
          spec: { ...volume.spec, claimRef: { namespace: 'default', name: sample.name ?? '' } },
        })
        index.release(name)
      }
    }
    waker.reconcileEnded(key)
  }
  return {
    volumes,
    index,
    waker,
    volumeByClaim,
    queuedKeys,
    reconcile,
    get reconciles() {
      return reconciles
    },
    createClaim(sample: ClaimSample & { waitingSince?: string }) {
      const key = `default/${sample.name}`
      claims.set(key, sample)
      queuedKeys.push(key)
    },
    deleteClaim(name: string) {
      claims.delete(`default/${name}`)
      queuedKeys.push(`default/${name}`)
    },
    runQueue() {
      for (let key = queuedKeys.shift(); key !== undefined; key = queuedKeys.shift()) reconcile(key)
    },
    unboundClaims: () =>
      [...claims.keys()].filter((key) => !volumeByClaim.has(key)).map((key) => aClaim(claims.get(key))),
  }
}

describe('the claim waker', () => {
  it('PROV-6 wakes one claim per free volume: of the claims that the volume satisfies, the one that has waited longest', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'young', waitingSince: '2026-01-02' })
    harness.createClaim({ name: 'old', waitingSince: '2026-01-01' })
    harness.createClaim({ name: 'large', waitingSince: '2025-01-01', size: '5Gi' })
    harness.runQueue()
    harness.volumes.put(aVolume({ name: 'a', size: '2Gi' }))
    expect(harness.queuedKeys).toEqual(['default/old'])
  })

  it('PROV-6 wakes a different claim for each free volume', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'a', waitingSince: '1' })
    harness.createClaim({ name: 'b', waitingSince: '2' })
    harness.runQueue()
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.volumes.put(aVolume({ name: 'y' }))
    expect(harness.queuedKeys).toEqual(['default/a', 'default/b'])
  })

  it('PROV-6 wakes the next claim for a volume that the first claim did not bind', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'a', waitingSince: '1' })
    harness.createClaim({ name: 'b', waitingSince: '2' })
    harness.runQueue()
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.deleteClaim('a') // deleted before it was reconciled
    harness.runQueue()
    expect([...harness.volumeByClaim]).toEqual([['default/b', 'x']])
  })

  it('PROV-6 wakes a claim for a volume whose binding failed', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'a' })
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.index.assume('x')
    harness.runQueue()
    expect(harness.volumeByClaim.size).toBe(0)
    harness.index.release('x')
    harness.runQueue()
    expect([...harness.volumeByClaim]).toEqual([['default/a', 'x']])
  })

  it('PROV-5 wakes no claim for a volume that is being bound, even if the volume changes', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'a' })
    harness.runQueue()
    harness.index.assume('x')
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.volumes.put(aVolume({ name: 'x', labels: { changed: 'yes' } }))
    expect([harness.queuedKeys, harness.index.candidate('x')]).toEqual([[], undefined])
  })

  it('PROV-6 wakes a claim again for a volume that became free during its reconcile', () => {
    const harness = createHarness()
    harness.createClaim({ name: 'a' })
    harness.runQueue()
    harness.waker.reconcileStarted('default/a')
    harness.waker.addWaiting(requirementsOf(aClaim({ name: 'a' })), '')
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.waker.reconcileEnded('default/a')
    expect(harness.queuedKeys).toEqual(['default/a'])
    harness.runQueue()
    expect(harness.volumeByClaim.get('default/a')).toBe('x')
  })

  it('needs twenty thousand reconciles for ten thousand volumes and as many waiting claims', () => {
    const COUNT = 10_000
    const harness = createHarness()
    for (let n = 0; n < COUNT; n++) harness.createClaim({ name: `c${n}`, waitingSince: String(n).padStart(6, '0') })
    harness.runQueue()
    for (let n = 0; n < COUNT; n++) harness.volumes.put(aVolume({ name: `v${n}` }))
    harness.runQueue()
    expect(harness.volumeByClaim.size).toBe(COUNT)
    expect(harness.reconciles).toBe(2 * COUNT)
  })

  it('compares a volume only once with each group of claims that have equal requirements', () => {
    const waitingClaims = createWaitingClaims()
    for (let n = 0; n < 10_000; n++)
      waitingClaims.add(requirementsOf(aClaim({ name: `c${n}`, size: `${5 + (n % 3)}Gi` })), '')
    const candidate = candidateOf(aVolume({ size: '1Gi' }))
    let comparisons = 0
    const countingCandidate = new Proxy(candidate, {
      get: (target, field) => {
        if (field === 'size') comparisons++
        return Reflect.get(target, field)
      },
    })
    expect(waitingClaims.take(countingCandidate)).toBeUndefined()
    expect(comparisons).toBe(3)
  })

  it('PROV-6 leaves no claim waiting while a volume that satisfies it is free, after any sequence of steps', () => {
    const sizes = fc.constantFrom('1Gi', '2Gi', '3Gi')
    const stepArbitrary = fc.oneof(
      fc.record({ do: fc.constant('claim' as const), n: fc.nat(9), size: sizes, tier: fc.constantFrom('', 'x') }),
      fc.record({ do: fc.constant('volume' as const), n: fc.nat(9), size: sizes, tier: fc.constantFrom('', 'x') }),
      fc.record({ do: fc.constant('deleteClaim' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('deleteVolume' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('failBinding' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('reconcile' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('runQueue' as const) }),
    )
    fc.assert(
      fc.property(fc.array(stepArbitrary, { maxLength: 60 }), (steps) => {
        const harness = createHarness()
        for (const step of steps) {
          if (step.do === 'claim') {
            const spec = step.tier ? { selector: { matchLabels: { tier: step.tier } } } : {}
            harness.createClaim({ name: `c${step.n}`, size: step.size, spec, waitingSince: String(step.n) })
          } else if (step.do === 'volume') {
            const isBound = [...harness.volumeByClaim.values()].includes(`v${step.n}`)
            const labels: VolumeSample = step.tier ? { labels: { tier: step.tier } } : {}
            if (!isBound) harness.volumes.put(aVolume({ name: `v${step.n}`, size: step.size, ...labels }))
          } else if (step.do === 'deleteClaim') harness.deleteClaim(`c${step.n}`)
          else if (step.do === 'deleteVolume') harness.volumes.remove(`v${step.n}`)
          else if (step.do === 'failBinding') {
            harness.index.assume(`v${step.n}`)
            harness.index.release(`v${step.n}`)
          } else if (step.do === 'reconcile') harness.reconcile(`default/c${step.n}`)
          else harness.runQueue()
        }
        harness.runQueue()
        const names = [...harness.volumeByClaim.values()]
        expect(new Set(names).size).toBe(names.length)
        for (const claim of harness.unboundClaims()) {
          for (const volume of harness.volumes.all()) {
            const isFree = harness.index.candidate(volume.metadata.name) !== undefined
            expect(isFree && meetsRequirements(candidateOf(volume), requirementsOf(claim))).toBe(false)
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
