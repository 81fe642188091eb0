import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatLostVolumePolicy, parseLostVolumePolicy, readLostVolumePolicy } from './lost-volume-policy.ts'

it.each(['wait', 'mark-lost', 'delete-after=72h', 'delete-after=1h30m', 'delete-after=10s'])(
  'PLUS-11 parseLostVolumePolicy parses the policy %s',
  (text) => {
    const parsed = parseLostVolumePolicy(text)
    expect(parsed.is === 'policy' && formatLostVolumePolicy(parsed.policy)).toBe(text)
  },
)

it.each([
  ['', '"" is not a policy: expected wait, mark-lost or delete-after=DURATION, e.g. delete-after=72h'],
  ['Wait', '"Wait" is not a policy: expected wait, mark-lost or delete-after=DURATION, e.g. delete-after=72h'],
  [
    'delete-after',
    '"delete-after" is not a policy: expected wait, mark-lost or delete-after=DURATION, e.g. delete-after=72h',
  ],
  ['delete-after=', '"" is not a duration: expected hours, minutes or seconds, e.g. 72h, 90m or 30s'],
  ['delete-after=3d', '"3d" is not a duration: expected hours, minutes or seconds, e.g. 72h, 90m or 30s'],
  ['delete-after=-1h', '"-1h" is not a duration: expected hours, minutes or seconds, e.g. 72h, 90m or 30s'],
  ['delete-after=0s', 'the duration "0s" must be longer than 0s and at most 87600h'],
  ['delete-after=99999h', 'the duration "99999h" must be longer than 0s and at most 87600h'],
])('PLUS-11 parseLostVolumePolicy rejects %j with the reason', (text, message) => {
  expect(parseLostVolumePolicy(text)).toEqual({ is: 'invalid', message })
})

it('PLUS-11 parseLostVolumePolicy never reads an arbitrary text as a deletion', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const parsed = parseLostVolumePolicy(text)
      if (parsed.is === 'policy' && parsed.policy.do === 'delete') expect(text).toMatch(/^delete-after=\d/)
    }),
  )
})

it('PLUS-11 readLostVolumePolicy reads the annotation of a class', () => {
  const aClass = (annotations?: Record<string, string>) => ({
    metadata: { name: 'fast', annotations },
    provisioner: 'x',
  })
  expect(readLostVolumePolicy(aClass())).toBeUndefined()
  expect(readLostVolumePolicy(aClass({ 'stowage.dev/lost-volume-policy': 'mark-lost' }))).toEqual({
    is: 'policy',
    policy: { do: 'mark-lost' },
  })
})
