import { describe, expect, it } from 'vitest'
import { deviceBytesOf } from './loop-devices.ts'

describe('deviceBytesOf', () => {
  it.each([
    [1, 4_096],
    [4_096, 4_096],
    [4_097, 8_192],
  ])('rounds %d bytes up to %d bytes, a multiple of the page size', (capacityBytes, deviceBytes) =>
    expect(deviceBytesOf(capacityBytes)).toBe(deviceBytes),
  )
})
