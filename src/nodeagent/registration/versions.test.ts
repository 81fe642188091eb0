import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bestVersion, compareVersions, parseVersion } from './versions.ts'

describe('registration protocol versions', () => {
  it('bestVersion returns the highest 1.x version, or an error message if there is none or one is invalid', () => {
    expect(bestVersion(['1.0.0', '1.2', 'v1.10.0-rc1', '2.0.0'])).toEqual([1, 10, 0])
    expect(bestVersion([])).toMatch(/reports no protocol version/)
    expect(bestVersion(['0.3', '2.0'])).toMatch(/supports 0.3, 2.0/)
    expect(bestVersion(['1.0.0', 'latest'])).toMatch(/"latest"/)
  })

  it('compareVersions orders parsed versions numerically', () => {
    const version = fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99))
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(parseVersion(a.join('.'))).toEqual(a)
        const expectedOrder = a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
        expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(expectedOrder))
      }),
    )
  })
})
