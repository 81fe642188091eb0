import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSelector, satisfiesSelector } from './read-selector.ts'

const LABELS = { region: ['east', 'west', 'north'], tier: ['fast', 'slow'] }
const read = (selector?: Parameters<typeof readSelector>[1]) => readSelector(LABELS, selector, 'example.com/p')

describe('readSelector', () => {
  it('PROV-10 accepts every declared value without a selector', () => {
    expect(read()).toEqual({ is: 'read', labels: LABELS })
  })

  it('PROV-11 accepts the declared values that NotIn does not exclude', () => {
    const matchExpressions = [{ key: 'region', operator: 'NotIn', values: ['east', 'west'] }]
    expect(read({ matchExpressions })).toEqual({ is: 'read', labels: { ...LABELS, region: ['north'] } })
  })

  it('PROV-10 rejects DoesNotExist for a declared label', () => {
    const result = read({ matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] })
    expect(result).toMatchObject({ is: 'rejected', message: expect.stringContaining('no value of the label "tier"') })
  })

  it('PROV-10 rejects an unknown operator', () => {
    const result = read({ matchExpressions: [{ key: 'tier', operator: 'Near', values: ['fast'] }] })
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
        const result = read(claimSelector)
        const combinations = LABELS.region.flatMap((region) => LABELS.tier.map((tier) => ({ region, tier })))
        for (const labels of combinations) {
          const isAllowed =
            result.is === 'read' &&
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
