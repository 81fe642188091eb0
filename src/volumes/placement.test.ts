import { expect, it } from 'vitest'
import { formatPlacement, parsePlacement, readPlacement } from './placement.ts'

it.each(['spread', 'pack', 'headroom=1%', 'headroom=30%', 'headroom=99%'])(
  'PLUS-18 parsePlacement parses the policy %s',
  (text) => {
    const parsed = parsePlacement(text)
    expect(parsed.is === 'placement' && formatPlacement(parsed.placement)).toBe(text)
  },
)

it('PLUS-18 parsePlacement reads headroom without a percentage as headroom=20%', () => {
  expect(parsePlacement('headroom')).toEqual({ is: 'placement', placement: { policy: 'headroom', freePercent: 20 } })
})

it.each(['', 'Spread', 'headroom=', 'headroom=0%', 'headroom=100%', 'headroom=020%', 'headroom=20', 'pack '])(
  'PLUS-18 parsePlacement rejects the policy %j',
  (text) => {
    expect(parsePlacement(text)).toEqual({
      is: 'invalid',
      message: 'expected spread, pack, headroom or headroom=PERCENT%, e.g. headroom=30%',
    })
  },
)

it('PLUS-18 readPlacement reads the policy of a class, and falls back to the former annotation', () => {
  const readFrom = (annotations: Record<string, string>) =>
    readPlacement({ metadata: { name: 'fast', annotations }, provisioner: 'd.example.com' })
  expect(readFrom({})).toBeUndefined()
  expect(readFrom({ 'scheduling.stowage.dev/capacity': 'pack' })).toMatchObject({ placement: { policy: 'pack' } })
  expect(readFrom({ 'scheduling.stowage.dev/capacity': 'pack', 'stowage.dev/placement': 'spread' })).toMatchObject({
    placement: { policy: 'spread' },
  })
})
