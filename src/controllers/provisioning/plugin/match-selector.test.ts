import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matchSelector, satisfiesSelector } from './match-selector.ts'

const LABELS = { region: ['east', 'west', 'north'], tier: ['fast', 'slow'] }
const match = (selector?: Parameters<typeof matchSelector>[1]) => matchSelector(LABELS, selector, 'example.com/p')

describe('matchSelector', () => {
  it('PROV-10 accepts every declared value without a selector', () => {
    expect(match()).toEqual({ is: 'matched', labels: LABELS })
  })

  it('PROV-11 accepts the declared values that NotIn does not exclude', () => {
    const matchExpressions = [{ key: 'region', operator: 'NotIn', values: ['east', 'west'] }]
    expect(match({ matchExpressions })).toEqual({ is: 'matched', labels: { ...LABELS, region: ['north'] } })
  })

  it('PROV-10 rejects DoesNotExist for a declared label', () => {
    const result = match({ matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] })
    expect(result).toMatchObject({ is: 'rejected', message: expect.stringContaining('no value of the label "tier"') })
  })

  it('PROV-10 rejects an unknown operator', () => {
    const result = match({ matchExpressions: [{ key: 'tier', operator: 'Near', values: ['fast'] }] })
    expect(result).toMatchObject({ is: 'rejected', message: expect.stringContaining('"Near"') })
  })

  const key = fc.constantFrom('region', 'tier', 'colour')
  const value = fc.constantFrom('east', 'west', 'north', 'fast', 'slow', 'red')
  const expression = fc.oneof(
    fc.record({
      key,
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  )
  const selector = fc.record(
    { matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(expression, { maxLength: 3 }) },
    { requiredKeys: [] },
  )

  it('PROV-11 accepts exactly the values that satisfy the selector', () => {
    fc.assert(
      fc.property(selector, (claimSelector) => {
        const result = match(claimSelector)
        const combinations = LABELS.region.flatMap((region) => LABELS.tier.map((tier) => ({ region, tier })))
        for (const labels of combinations) {
          const isAllowed =
            result.is === 'matched' &&
            result.labels.region!.includes(labels.region) &&
            result.labels.tier!.includes(labels.tier)
          const isSupported = ![
            ...Object.keys(claimSelector.matchLabels ?? {}),
            ...(claimSelector.matchExpressions ?? []).map((requirement) => requirement.key),
          ].includes('colour')
          expect(isAllowed).toBe(isSupported && satisfiesSelector(claimSelector, labels))
        }
      }),
    )
  })
})
