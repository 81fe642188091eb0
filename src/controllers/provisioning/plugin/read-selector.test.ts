import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSelector, satisfiesSelector } from './read-selector.ts'

const LABELS = { region: ['east', 'west', 'north'], tier: ['fast', 'slow'] }
const read = (selector?: Parameters<typeof readSelector>[1]) => readSelector(LABELS, selector, 'example.com/p')

describe('the selector of a claim', () => {
  it('PROV-10 allows every declared value if absent', () => {
    expect(read()).toEqual({ is: 'read', labels: LABELS })
  })

  it('PROV-11 "not in east or west" leaves north', () => {
    const matchExpressions = [{ key: 'region', operator: 'NotIn', values: ['east', 'west'] }]
    expect(read({ matchExpressions })).toEqual({ is: 'read', labels: { ...LABELS, region: ['north'] } })
  })

  it('PROV-10 rejects DoesNotExist for a declared label', () => {
    const answer = read({ matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] })
    expect(answer).toMatchObject({ is: 'rejected', because: expect.stringContaining('no value of the label "tier"') })
  })

  it('PROV-10 rejects an unknown operator', () => {
    const answer = read({ matchExpressions: [{ key: 'tier', operator: 'Near', values: ['fast'] }] })
    expect(answer).toMatchObject({ is: 'rejected', because: expect.stringContaining('"Near"') })
  })

  const key = fc.constantFrom('region', 'tier', 'colour')
  const word = fc.constantFrom('east', 'west', 'north', 'fast', 'slow', 'red')
  const expression = fc.oneof(
    fc.record({
      key,
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.array(word, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  )
  const selector = fc.record(
    { matchLabels: fc.dictionary(key, word), matchExpressions: fc.array(expression, { maxLength: 3 }) },
    { requiredKeys: [] },
  )

  it('PROV-11 allows exactly the values that satisfy the selector', () => {
    fc.assert(
      fc.property(selector, (given) => {
        const answer = read(given)
        const every = LABELS.region.flatMap((region) => LABELS.tier.map((tier) => ({ region, tier })))
        for (const labels of every) {
          const isAllowed =
            answer.is === 'read' &&
            answer.labels.region!.includes(labels.region) &&
            answer.labels.tier!.includes(labels.tier)
          const isUnderstood = ![
            ...Object.keys(given.matchLabels ?? {}),
            ...(given.matchExpressions ?? []).map((one) => one.key),
          ].includes('colour')
          expect(isAllowed).toBe(isUnderstood && satisfiesSelector(given, labels))
        }
      }),
    )
  })
})
