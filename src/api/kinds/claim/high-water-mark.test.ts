import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareQuantities } from '../../quantity.ts'
import { tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'

const GATE_DISABLED = { gates: 'RecoverExpansionFailure=false' }

const aClaim = (storage: string, spec: object = {}) => ({
  metadata: { name: 'data', namespace: 'shop' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
})

function aBoundClaim(storage: string, capacity: string, options = {}) {
  const { object } = tryCreate(kind, aClaim(storage), options)
  object.status = { phase: 'Bound', capacity: { storage: capacity } }
  return object
}

const resize = (claim: ReturnType<typeof aBoundClaim>, storage: string, options = {}) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.resources.requests.storage = storage), options).object

describe('the high-water mark of a claim', () => {
  it('REX-3 is initially the request', () => {
    expect(tryCreate(kind, aClaim('10Gi')).object.spec?.allocatedResources).toEqual({ storage: '10Gi' })
  })

  it('REX-3 ignores values from users on create and update, without an error', () => {
    for (const allocatedResources of [{ storage: '1Ti' }, { storage: '-5', iops: '3' }, {}]) {
      const createResult = tryCreate(kind, aClaim('10Gi', { allocatedResources }))
      expect(createResult.errors).toEqual([])
      expect(createResult.object.spec?.allocatedResources).toEqual({ storage: '10Gi' })
      const updateResult = tryUpdate(
        kind,
        createResult.object,
        (draft) => (draft.spec.allocatedResources = allocatedResources),
      )
      expect(updateResult.errors).toEqual([])
      expect(updateResult.object).toEqual(createResult.object)
    }
  })

  it('REX-3 is kept by a PUT without it', () => {
    const claim = aBoundClaim('10Gi', '10Gi')
    const { object } = tryUpdate(kind, claim, (draft) => delete draft.spec.allocatedResources)
    expect(object.spec?.allocatedResources).toEqual({ storage: '10Gi' })
  })

  it('REX-3 never falls, in any order of updates', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 20 }), (sizes) => {
        let claim = aBoundClaim('500Gi', '1Gi')
        let mark = '500Gi'
        for (const size of sizes) {
          claim = resize(claim, `${size}Gi`)
          const next = claim.spec!.allocatedResources!.storage!
          expect(compareQuantities(next, mark)).toBeGreaterThanOrEqual(0)
          expect(compareQuantities(next, `${size}Gi`)).toBeGreaterThanOrEqual(0)
          mark = next
        }
        expect(mark).toBe(formatMaximum([500, ...sizes]))
      }),
    )
  })

  it('REX-3 is not changed by a status update', () => {
    const claim = aBoundClaim('10Gi', '10Gi')
    const { object } = tryStatus(kind, claim, (draft) => (draft.spec.allocatedResources = { storage: '1Ti' }))
    expect(object.spec).toEqual(claim.spec)
  })

  it('REX-10 is not set while the feature gate is disabled', () => {
    const claim = aBoundClaim('10Gi', '10Gi', GATE_DISABLED)
    expect(claim.spec).not.toHaveProperty('allocatedResources')
    expect(resize(claim, '20Gi', GATE_DISABLED).spec).not.toHaveProperty('allocatedResources')
  })

  it('REX-10 is kept and rises on a claim that already has it while the feature gate is disabled', () => {
    const expandedClaim = resize(aBoundClaim('20Gi', '10Gi'), '30Gi', GATE_DISABLED)
    expect(expandedClaim.spec?.allocatedResources).toEqual({ storage: '30Gi' })
    expect(resize(expandedClaim, '10Gi', GATE_DISABLED).spec?.allocatedResources).toEqual({ storage: '30Gi' })
  })

  it('is initially the larger of the old and new request on a claim created while the feature gate was disabled', () => {
    const claim = aBoundClaim('20Gi', '10Gi', GATE_DISABLED)
    expect(resize(claim, '15Gi').spec?.allocatedResources).toEqual({ storage: '20Gi' })
    expect(resize(claim, '25Gi').spec?.allocatedResources).toEqual({ storage: '25Gi' })
  })
})

describe('the high-water mark with --expansion-quota=actual', () => {
  const ACTUAL = { expansionQuota: 'actual' } as const
  const NO_EXPANSION = { allocatedResources: undefined, allocatedResourceStatuses: undefined }
  const updateStatus = (claim: ReturnType<typeof aBoundClaim>, status: object, options = ACTUAL) =>
    tryStatus(kind, claim, (draft) => Object.assign(draft.status, status), options).object
  const markOf = ({ spec }: ReturnType<typeof aBoundClaim>) => spec?.allocatedResources?.storage
  /** Creates a claim of 10Gi whose expansion to 100Gi has started. */
  const createExpandingClaim = () =>
    updateStatus(resize(aBoundClaim('10Gi', '10Gi'), '100Gi', ACTUAL), {
      allocatedResources: { storage: '100Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    })

  it('PLUS-14 falls when a status write reports the new capacity, and not before', () => {
    let claim = resize(createExpandingClaim(), '20Gi', ACTUAL)
    expect(markOf(claim)).toBe('100Gi')
    claim = updateStatus(claim, { allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } })
    expect(markOf(claim)).toBe('100Gi')
    claim = updateStatus(claim, {
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    })
    expect(markOf(claim)).toBe('100Gi')
    claim = updateStatus(claim, { capacity: { storage: '20Gi' }, allocatedResourceStatuses: undefined })
    expect(markOf(claim)).toBe('20Gi')
  })

  it("PLUS-14 stays at the volume's capacity if the capacity exceeds the request", () => {
    const claim = resize(createExpandingClaim(), '20Gi', ACTUAL)
    const expandedClaim = updateStatus(claim, { capacity: { storage: '100Gi' }, allocatedResourceStatuses: undefined })
    expect(markOf(expandedClaim)).toBe('100Gi')
  })

  it('PLUS-14 falls after a cancelled expansion once the driver has responded', () => {
    const cancelled = resize(createExpandingClaim(), '10Gi', ACTUAL)
    expect(markOf(cancelled)).toBe('100Gi')
    expect(markOf(updateStatus(cancelled, NO_EXPANSION))).toBe('10Gi')
  })

  it('PLUS-14 falls immediately if the expansion had not started', () => {
    const requestedClaim = resize(aBoundClaim('10Gi', '10Gi'), '100Gi', ACTUAL)
    expect(markOf(requestedClaim)).toBe('100Gi')
    expect(markOf(resize(requestedClaim, '10Gi', ACTUAL))).toBe('10Gi')
  })

  it.each<[string, object]>([
    ['a larger size is still allocated', { allocatedResources: { storage: '100Gi' } }],
    ['the node resize is pending', { allocatedResourceStatuses: { storage: 'NodeResizePending' } }],
    ['the claim is not bound', { phase: 'Lost' }],
    ['the capacity is unknown', { capacity: undefined }],
  ])('PLUS-14 stays while %s', (_case, status) => {
    const claim = resize(resize(aBoundClaim('10Gi', '10Gi'), '100Gi'), '10Gi')
    expect(markOf(updateStatus(claim, status))).toBe('100Gi')
  })

  it('PLUS-14 stays while the request exceeds the capacity', () => {
    const claim = resize(resize(aBoundClaim('10Gi', '10Gi'), '100Gi'), '20Gi')
    expect(markOf(updateStatus(claim, NO_EXPANSION))).toBe('100Gi')
  })

  it('PLUS-14 is not raised by a volume that is larger than the request', () => {
    const claim = aBoundClaim('10Gi', '10Gi')
    expect(markOf(updateStatus(claim, { capacity: { storage: '50Gi' } }))).toBe('10Gi')
  })

  it('PLUS-14 stays in the default mode, and while the feature gate is disabled', () => {
    const claim = resize(resize(aBoundClaim('10Gi', '10Gi'), '100Gi'), '10Gi')
    expect(markOf(updateStatus(claim, NO_EXPANSION, {} as never))).toBe('100Gi')
    expect(markOf(updateStatus(claim, NO_EXPANSION, { ...ACTUAL, ...GATE_DISABLED } as never))).toBe('100Gi')
    expect(markOf(updateStatus(claim, NO_EXPANSION))).toBe('10Gi')
  })
})

const formatMaximum = (sizes: number[]): string => `${Math.max(...sizes)}Gi`
