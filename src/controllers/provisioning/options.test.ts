import { describe, expect, it } from 'vitest'
import { settingsOf, volumeNameOf } from './options.ts'

describe('volumeNameOf', () => {
  const UID = '5a294561-7e5b-11e6-a20e-0eb6048532a3'
  it.each([
    [`pvc-${UID}`, {}],
    [`vol-${UID}`, { volumeNamePrefix: 'vol' }],
    ['pvc-5a2945617e', { volumeNameUuidLength: 10 }],
    ['pvc-5a2945617e5b11e6a20e0eb6048532a3', { volumeNameUuidLength: 64 }],
  ])('PROV-11 returns %s with options %j', (name, options) => {
    expect(volumeNameOf(UID, settingsOf(options))).toBe(name)
  })
})

describe('settingsOf', () => {
  it.each([{ volumeNamePrefix: '' }, { volumeNameUuidLength: 0 }, { volumeNameUuidLength: 1.5 }])(
    'PROV-11 rejects options %j',
    (options) => {
      expect(() => settingsOf(options)).toThrow(/Cannot name volumes/)
    },
  )
})
