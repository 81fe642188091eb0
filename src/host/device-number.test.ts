import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deviceNumberOf, formatDeviceNumber } from './device-number.ts'

describe('formatDeviceNumber', () => {
  it('unpacks numbers that are packed as in the C library', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 32n - 1n), fc.bigInt(0n, 2n ** 32n - 1n), (major, minor) => {
        const packed =
          ((major & 0xfffff000n) << 32n) | ((major & 0xfffn) << 8n) | ((minor & ~0xffn) << 12n) | (minor & 0xffn)
        expect(formatDeviceNumber(packed)).toBe(`${major}:${minor}`)
      }),
    )
  })
})

describe('deviceNumberOf', () => {
  it('returns 1:3 for /dev/null', async () => {
    expect(await deviceNumberOf('/dev/null')).toBe('1:3')
  })
})
