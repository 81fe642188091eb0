import { expect, it } from 'vitest'
import { UsageError } from '../../../base/usage-error.ts'
import { parseControllers } from '../controllers/run.ts'
import { parseCapacityCleanupFlags } from './run.ts'

it('CAP-9 defaults to all drivers, all namespaces and ten minutes', () => {
  expect(parseCapacityCleanupFlags({})).toEqual({ goneForMs: 600_000 })
  expect(
    parseCapacityCleanupFlags({ driverName: ['a.example', 'b.example'], namespace: 'storage', goneFor: '1h30m' }),
  ).toEqual({ drivers: ['a.example', 'b.example'], namespace: 'storage', goneForMs: 5_400_000 })
})

it('CAP-9 capacity-cleanup is enabled by default in stowage controllers', () => {
  expect(parseControllers()).toContain('capacity-cleanup')
})

it.each([
  [{ driverName: ['a b'] }, '--driver-name "a b": expected a name such as hostpath.csi.k8s.io'],
  [{ driverName: [''] }, '--driver-name "": expected a name'],
  [{ goneFor: 'soon' }, '--gone-for "soon": expected a duration such as 90s, 10m or 1h'],
])('CAP-9 rejects %j with a usage error that names the flag', (flags, message) => {
  expect(() => parseCapacityCleanupFlags(flags)).toThrow(UsageError)
  expect(() => parseCapacityCleanupFlags(flags)).toThrow(message)
})
