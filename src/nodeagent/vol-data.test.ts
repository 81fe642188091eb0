import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatVolData, parseVolData } from './vol-data.ts'

describe('vol_data.json', () => {
  it('round-trips any volume handle', () => {
    const text = fc.string({ minLength: 1 })
    fc.assert(
      fc.property(text, text, text, (volumeHandle, driverName, specVolID) => {
        const data = { volumeHandle, driverName, specVolID, volumeLifecycleMode: 'Persistent' as const }
        expect(parseVolData(formatVolData(data))).toEqual(data)
      }),
    )
  })

  it('is rejected if it is truncated or has another format', () => {
    const complete = formatVolData({ volumeHandle: 'h', driverName: 'd' }).trimEnd()
    for (let length = 0; length < complete.length; length++)
      expect(parseVolData(complete.slice(0, length))).toBeUndefined()
    for (const invalid of ['null', '[]', '"x"', '{}', '{"volumeHandle":1,"driverName":"d"}', '{"driverName":"d"}']) {
      expect(parseVolData(invalid)).toBeUndefined()
    }
    fc.assert(fc.property(fc.string(), (text) => void parseVolData(text)))
  })
})
