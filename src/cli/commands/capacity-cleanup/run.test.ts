import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../base/usage-error.ts'

import { parseCapacityCleanupFlags } from './run.ts'

describe('parseCapacityCleanupFlags', () => {
  it('CAP-9 defaults to all drivers, all namespaces and ten minutes', () => {
    expect(parseCapacityCleanupFlags({})).toEqual({ missingForMs: 600_000 })
  })

  it('CAP-9 parses drivers, namespace and duration', () => {
    expect(
      parseCapacityCleanupFlags({ driverName: ['a.example', 'b.example'], namespace: 'storage', goneFor: '1h30m' }),
    ).toEqual({ drivers: ['a.example', 'b.example'], namespace: 'storage', missingForMs: 5_400_000 })
  })

  it.each([
    [{ driverName: ['a b'] }, '--driver-name "a b": expected a name such as hostpath.csi.k8s.io'],
    [{ driverName: [''] }, '--driver-name "": expected a name'],
    [{ goneFor: 'soon' }, '--gone-for "soon": expected a duration such as 90s, 10m or 1h'],
  ])('CAP-9 rejects %j with a usage error that contains the flag', (flags, message) => {
    expect(() => parseCapacityCleanupFlags(flags)).toThrow(UsageError)
    expect(() => parseCapacityCleanupFlags(flags)).toThrow(message)
  })
})
