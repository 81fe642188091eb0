import { describe, expect, it } from 'vitest'
import { cellsOf, tryCreate } from '../kind.fixture.ts'
import { leaseKind } from './lease.ts'

const aLease = (spec: object) => ({ metadata: { name: 'leader', namespace: 'kube-system' }, spec })

describe('Lease', () => {
  it.each([
    [{ leaseDurationSeconds: 0 }, 'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
    [{ leaseTransitions: -1 }, 'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0'],
    [
      { strategy: 'Youngest' },
      'spec.strategy: Unsupported value: "Youngest": supported values: "OldestEmulationVersion"',
    ],
    [{ preferredHolder: 'a' }, 'spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined'],
  ])('rejects %j', (spec, message) => {
    expect(tryCreate(leaseKind, aLease(spec)).errors).toEqual([message])
  })

  it('accepts an empty spec, and one with a holder, a duration and a renewal time', () => {
    expect(tryCreate(leaseKind, aLease({})).errors).toEqual([])
    const completeLease = aLease({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      renewTime: '2026-01-02T03:04:05.123456Z',
    })
    const { object, errors } = tryCreate(leaseKind, completeLease)
    expect(errors).toEqual([])
    expect(cellsOf(leaseKind, object)).toMatchObject({ Name: 'leader', Holder: 'a' })
  })

  it('requires a resourceVersion for updates and can be created by an update', () => {
    expect(leaseKind).toMatchObject({ allowsUnconditionalUpdate: false, allowsCreateOnUpdate: true })
  })
})
