import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chooseVolume, satisfies } from '../../volumes/choose-volume.ts'
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

/** Claims that are reconciled one after the other, as by a work queue, and volumes that appear and disappear. */
function startWaker() {
  const volumes = fakeVolumeCache()
  const index = createVolumeIndex(volumes.cache)
  const woken: string[] = []
  const waker = createClaimWaker(index, (key) => void woken.push(key))
  waker.start()
  const taken = new Map<string, string>()
  const claims = new Map<string, ClaimSample & { readonly since?: string }>()
  let reconciles = 0

  function reconcile(key: string): void {
    reconciles++
    waker.reconcileStarted(key)
    const sample = claims.get(key)
    if (sample && !taken.has(key)) {
      const claim = aClaim(sample)
      const volume = chooseVolume(claim, requirementsOf(claim), index)
      if (!volume) waker.addWaiting(requirementsOf(claim), sample.since ?? '')
      else {
        const { name } = volume.metadata
        index.assume(name)
        taken.set(key, name)
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
    taken,
    woken,
    reconcile,
    get reconciles() {
      return reconciles
    },
    claim(sample: ClaimSample & { since?: string }) {
      const key = `default/${sample.name}`
      claims.set(key, sample)
      woken.push(key)
    },
    drop(name: string) {
      claims.delete(`default/${name}`)
      woken.push(`default/${name}`)
    },
    work() {
      for (let key = woken.shift(); key !== undefined; key = woken.shift()) reconcile(key)
    },
    untaken: () => [...claims.keys()].filter((key) => !taken.has(key)).map((key) => aClaim(claims.get(key))),
  }
}

describe('the claim waker', () => {
  it('PROV-6 wakes one claim per free volume: the one that has waited longest of those it satisfies', () => {
    const harness = startWaker()
    harness.claim({ name: 'young', since: '2026-01-02' })
    harness.claim({ name: 'old', since: '2026-01-01' })
    harness.claim({ name: 'large', since: '2025-01-01', size: '5Gi' })
    harness.work()
    harness.volumes.put(aVolume({ name: 'a', size: '2Gi' }))
    expect(harness.woken).toEqual(['default/old'])
  })

  it('PROV-6 wakes a claim for one volume at a time', () => {
    const harness = startWaker()
    harness.claim({ name: 'a', since: '1' })
    harness.claim({ name: 'b', since: '2' })
    harness.work()
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.volumes.put(aVolume({ name: 'y' }))
    expect(harness.woken).toEqual(['default/a', 'default/b'])
  })

  it('PROV-6 wakes the next claim for a volume that the first did not bind', () => {
    const harness = startWaker()
    harness.claim({ name: 'a', since: '1' })
    harness.claim({ name: 'b', since: '2' })
    harness.work()
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.drop('a') // deleted before it was reconciled
    harness.work()
    expect([...harness.taken]).toEqual([['default/b', 'x']])
  })

  it('PROV-6 wakes a claim for a volume whose binding failed', () => {
    const harness = startWaker()
    harness.claim({ name: 'a' })
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.index.assume('x')
    harness.work()
    expect(harness.taken.size).toBe(0)
    harness.index.release('x')
    harness.work()
    expect([...harness.taken]).toEqual([['default/a', 'x']])
  })

  it('PROV-5 wakes no claim for a volume that is being bound, even if it changes meanwhile', () => {
    const harness = startWaker()
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.index.assume('x')
    harness.volumes.put(aVolume({ name: 'x', labels: { changed: 'yes' } }))
    harness.claim({ name: 'a' })
    harness.work()
    expect([harness.taken.size, harness.index.candidate('x')]).toEqual([0, undefined])
  })

  it('PROV-6 wakes a claim again for a volume that became free during its reconcile', () => {
    const harness = startWaker()
    harness.claim({ name: 'a' })
    harness.work()
    harness.waker.reconcileStarted('default/a')
    harness.waker.addWaiting(requirementsOf(aClaim({ name: 'a' })), '')
    harness.volumes.put(aVolume({ name: 'x' }))
    harness.waker.reconcileEnded('default/a')
    expect(harness.woken).toEqual(['default/a'])
    harness.work()
    expect(harness.taken.get('default/a')).toBe('x')
  })

  it('PROV-6 needs twenty thousand reconciles for ten thousand volumes and as many waiting claims', () => {
    const COUNT = 10_000
    const harness = startWaker()
    for (let n = 0; n < COUNT; n++) harness.claim({ name: `c${n}`, since: String(n).padStart(6, '0') })
    harness.work()
    for (let n = 0; n < COUNT; n++) harness.volumes.put(aVolume({ name: `v${n}` }))
    harness.work()
    expect(harness.taken.size).toBe(COUNT)
    expect(harness.reconciles).toBe(2 * COUNT)
  })

  it('PROV-6 compares a volume that satisfies no claim once per group of equal requirements', () => {
    const waiting = createWaitingClaims()
    for (let n = 0; n < 10_000; n++)
      waiting.add(requirementsOf(aClaim({ name: `c${n}`, size: `${5 + (n % 3)}Gi` })), '')
    const candidate = candidateOf(aVolume({ size: '1Gi' }))
    let comparisons = 0
    const counted = new Proxy(candidate, {
      get: (target, field) => {
        if (field === 'size') comparisons++
        return Reflect.get(target, field)
      },
    })
    expect(waiting.take(counted)).toBeUndefined()
    expect(comparisons).toBe(3)
  })

  it('PROV-6 lets no claim wait while a volume that satisfies it is free, after any sequence of steps', () => {
    const sizes = fc.constantFrom('1Gi', '2Gi', '3Gi')
    const steps = fc.oneof(
      fc.record({ do: fc.constant('claim' as const), n: fc.nat(9), size: sizes, tier: fc.constantFrom('', 'x') }),
      fc.record({ do: fc.constant('volume' as const), n: fc.nat(9), size: sizes, tier: fc.constantFrom('', 'x') }),
      fc.record({ do: fc.constant('drop' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('remove' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('fail' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('pass' as const), n: fc.nat(9) }),
      fc.record({ do: fc.constant('work' as const) }),
    )
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 60 }), (taken) => {
        const harness = startWaker()
        for (const step of taken) {
          if (step.do === 'claim') {
            const spec = step.tier ? { selector: { matchLabels: { tier: step.tier } } } : {}
            harness.claim({ name: `c${step.n}`, size: step.size, spec, since: String(step.n) })
          } else if (step.do === 'volume') {
            const isTaken = [...harness.taken.values()].includes(`v${step.n}`)
            const labels: VolumeSample = step.tier ? { labels: { tier: step.tier } } : {}
            if (!isTaken) harness.volumes.put(aVolume({ name: `v${step.n}`, size: step.size, ...labels }))
          } else if (step.do === 'drop') harness.drop(`c${step.n}`)
          else if (step.do === 'remove') harness.volumes.remove(`v${step.n}`)
          else if (step.do === 'fail') {
            harness.index.assume(`v${step.n}`)
            harness.index.release(`v${step.n}`)
          } else if (step.do === 'pass') harness.reconcile(`default/c${step.n}`)
          else harness.work()
        }
        harness.work()
        const names = [...harness.taken.values()]
        expect(new Set(names).size).toBe(names.length)
        for (const claim of harness.untaken()) {
          for (const volume of harness.volumes.all()) {
            const isFree = harness.index.candidate(volume.metadata.name) !== undefined
            expect(isFree && satisfies(candidateOf(volume), requirementsOf(claim))).toBe(false)
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
