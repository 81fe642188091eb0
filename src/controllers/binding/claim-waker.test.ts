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

/** Claims that pass one after the other, as the work queue has them do, and volumes that come and go. */
function aMarket() {
  const hand = fakeVolumeCache()
  const index = createVolumeIndex(hand.cache)
  const woken: string[] = []
  const matchmaker = createClaimWaker(index, (key) => void woken.push(key))
  matchmaker.start()
  const taken = new Map<string, string>()
  const claims = new Map<string, ClaimSample & { readonly since?: string }>()
  let passes = 0

  function pass(key: string): void {
    passes++
    matchmaker.reconcileStarted(key)
    const sample = claims.get(key)
    if (sample && !taken.has(key)) {
      const claim = aClaim(sample)
      const volume = chooseVolume(claim, requirementsOf(claim), index)
      if (!volume) matchmaker.addWaiting(requirementsOf(claim), sample.since ?? '')
      else {
        const { name = '' } = volume.metadata
        index.assume(name)
        taken.set(key, name)
        hand.put({ ...volume, spec: { ...volume.spec, claimRef: { namespace: 'default', name: sample.name ?? '' } } })
        index.release(name)
      }
    }
    matchmaker.reconcileEnded(key)
  }
  return {
    hand,
    index,
    matchmaker,
    taken,
    woken,
    pass,
    get passes() {
      return passes
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
      for (let key = woken.shift(); key !== undefined; key = woken.shift()) pass(key)
    },
    untaken: () => [...claims.keys()].filter((key) => !taken.has(key)).map((key) => aClaim(claims.get(key))),
  }
}

describe('bringing volumes to claims that wait', () => {
  it('PROV-6 a volume that becomes free wakes one claim: the one that has waited longest of those it satisfies', () => {
    const market = aMarket()
    market.claim({ name: 'young', since: '2026-01-02' })
    market.claim({ name: 'old', since: '2026-01-01' })
    market.claim({ name: 'large', since: '2025-01-01', size: '5Gi' })
    market.work()
    market.hand.put(aVolume({ name: 'a', size: '2Gi' }))
    expect(market.woken).toEqual(['default/old'])
  })

  it('PROV-6 a claim with a volume on its way is not offered a second one', () => {
    const market = aMarket()
    market.claim({ name: 'a', since: '1' })
    market.claim({ name: 'b', since: '2' })
    market.work()
    market.hand.put(aVolume({ name: 'x' }))
    market.hand.put(aVolume({ name: 'y' }))
    expect(market.woken).toEqual(['default/a', 'default/b'])
  })

  it('PROV-6 a volume that its claim does not take goes to the next', () => {
    const market = aMarket()
    market.claim({ name: 'a', since: '1' })
    market.claim({ name: 'b', since: '2' })
    market.work()
    market.hand.put(aVolume({ name: 'x' }))
    market.drop('a') // deleted before its pass
    market.work()
    expect([...market.taken]).toEqual([['default/b', 'x']])
  })

  it('PROV-6 a volume whose binding failed is offered again', () => {
    const market = aMarket()
    market.claim({ name: 'a' })
    market.hand.put(aVolume({ name: 'x' }))
    market.index.assume('x')
    market.work()
    expect(market.taken.size).toBe(0)
    market.index.release('x')
    market.work()
    expect([...market.taken]).toEqual([['default/a', 'x']])
  })

  it('PROV-5 a volume that is being bound is offered to nobody, also when it changes meanwhile', () => {
    const market = aMarket()
    market.hand.put(aVolume({ name: 'x' }))
    market.index.assume('x')
    market.hand.put(aVolume({ name: 'x', labels: { changed: 'yes' } }))
    market.claim({ name: 'a' })
    market.work()
    expect([market.taken.size, market.index.candidate('x')]).toEqual([0, undefined])
  })

  it('PROV-6 what is offered during a pass waits for the next one', () => {
    const market = aMarket()
    market.claim({ name: 'a' })
    market.work()
    market.matchmaker.reconcileStarted('default/a')
    market.matchmaker.addWaiting(requirementsOf(aClaim({ name: 'a' })), '')
    market.hand.put(aVolume({ name: 'x' }))
    market.matchmaker.reconcileEnded('default/a')
    expect(market.woken).toEqual(['default/a'])
    market.work()
    expect(market.taken.get('default/a')).toBe('x')
  })

  it('PROV-6 ten thousand volumes for ten thousand waiting claims are twenty thousand passes, not a hundred million', () => {
    const COUNT = 10_000
    const market = aMarket()
    for (let n = 0; n < COUNT; n++) market.claim({ name: `c${n}`, since: String(n).padStart(6, '0') })
    market.work()
    for (let n = 0; n < COUNT; n++) market.hand.put(aVolume({ name: `v${n}` }))
    market.work()
    expect(market.taken.size).toBe(COUNT)
    expect(market.passes).toBe(2 * COUNT)
  })

  it('PROV-6 volumes that satisfy nobody wake nobody, at the cost of the different demands', () => {
    const waiting = createWaitingClaims()
    for (let n = 0; n < 10_000; n++)
      waiting.add(requirementsOf(aClaim({ name: `c${n}`, size: `${5 + (n % 3)}Gi` })), '')
    const offer = candidateOf(aVolume({ size: '1Gi' }))
    let looks = 0
    const counted = new Proxy(offer, {
      get: (target, field) => {
        if (field === 'size') looks++
        return Reflect.get(target, field)
      },
    })
    expect(waiting.take(counted)).toBeUndefined()
    expect(looks).toBe(3)
  })

  it('PROV-6 no claim waits while a volume that satisfies it is free, whatever happens', () => {
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
        const market = aMarket()
        for (const step of taken) {
          if (step.do === 'claim') {
            const spec = step.tier ? { selector: { matchLabels: { tier: step.tier } } } : {}
            market.claim({ name: `c${step.n}`, size: step.size, spec, since: String(step.n) })
          } else if (step.do === 'volume') {
            const isTaken = [...market.taken.values()].includes(`v${step.n}`)
            const labels: VolumeSample = step.tier ? { labels: { tier: step.tier } } : {}
            if (!isTaken) market.hand.put(aVolume({ name: `v${step.n}`, size: step.size, ...labels }))
          } else if (step.do === 'drop') market.drop(`c${step.n}`)
          else if (step.do === 'remove') market.hand.remove(`v${step.n}`)
          else if (step.do === 'fail') {
            market.index.assume(`v${step.n}`)
            market.index.release(`v${step.n}`)
          } else if (step.do === 'pass') market.pass(`default/c${step.n}`)
          else market.work()
        }
        market.work()
        const names = [...market.taken.values()]
        expect(new Set(names).size).toBe(names.length)
        for (const claim of market.untaken()) {
          for (const volume of market.hand.all()) {
            const isFree = market.index.candidate(volume.metadata.name ?? '') !== undefined
            expect(isFree && satisfies(candidateOf(volume), requirementsOf(claim))).toBe(false)
          }
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
