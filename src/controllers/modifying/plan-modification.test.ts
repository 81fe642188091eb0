import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planModification } from './plan-modification.ts'
import type { ClassLookup, Situation } from './situation.ts'
import { isSameAmount, isSameTarget } from './target.ts'

const DRIVER = 'disks.example.com'
const CLASSES: Readonly<Record<string, ClassLookup>> = {
  silver: { is: 'found', driverName: DRIVER, parameters: { iops: '500', tier: 'cool' } },
  gold: { is: 'found', driverName: DRIVER, parameters: { iops: '1000' } },
  foreign: { is: 'found', driverName: 'other.example.com', parameters: { iops: '1' } },
  unsynced: { is: 'unknown' },
}
const lookUpClass = (name: string): ClassLookup => CLASSES[name] ?? { is: 'missing' }

const undefinedOr = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const aClassName = fc.constantFrom('silver', 'gold', 'foreign', 'unsynced', 'missing')
const anAmount = fc.constantFrom('500', '1000', '7')
const aTarget = fc.record({
  className: undefinedOr(aClassName),
  iops: undefinedOr(anAmount),
  throughput: undefinedOr(fc.constant('1Mi')),
})
const aProgress = fc.record({
  allocatedAmount: undefinedOr(anAmount),
  status: undefinedOr(
    fc.constantFrom(
      'ControllerModifyVolumePending' as const,
      'ControllerModifyVolumeInProgress' as const,
      'ControllerModifyVolumeFailed' as const,
    ),
  ),
})
const aSituation: fc.Arbitrary<Situation> = fc.record({
  requestedTarget: aTarget,
  usesClasses: fc.constant(true),
  currentTarget: aTarget,
  reportsIo: fc.boolean(),
  classStatus: undefinedOr(fc.constantFrom('Pending' as const, 'InProgress' as const, 'Infeasible' as const)),
  classTarget: undefinedOr(aClassName),
  io: fc.record({ iops: aProgress, throughput: aProgress }),
  hasConditions: fc.boolean(),
  undo: undefinedOr(fc.dictionary(fc.constantFrom('iops', 'tier', 'zone'), fc.option(fc.constantFrom('1', '2')))),
  confirmedAttributes: fc.dictionary(fc.constantFrom('iops', 'tier'), fc.constantFrom('1', '2')),
  driverName: fc.constant(DRIVER),
  canModify: fc.boolean(),
  hasFinalResponse: fc.boolean(),
  isBlockedByUse: fc.boolean(),
  rejectedCall: fc.constant(undefined),
  lookUpClass: fc.constant(lookUpClass),
})

const forAnySituation = (check: (situation: Situation) => void) =>
  fc.assert(fc.property(aSituation, check), { numRuns: 5_000 })

describe('planModification', () => {
  it("VAC-8 never calls a driver without MODIFY_VOLUME, for another driver's class, or without attributes", () => {
    forAnySituation((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify') return
      expect(situation.canModify).toBe(true)
      if (plan.purpose === 'change') expect(plan.target.className).not.toBe('foreign')
      expect(Object.keys(plan.attributes)).not.toHaveLength(0)
    })
  })

  it('VAC-6 sends only the requested target, or restores the one in effect', () => {
    forAnySituation((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify') return
      const { className, ...amounts } = situation.requestedTarget
      const desiredTarget = { ...amounts, className: className ?? situation.currentTarget.className }
      const isRestored = plan.purpose === 'cancel' && isSameTarget(plan.target, situation.currentTarget)
      expect(isRestored || isSameTarget(plan.target, desiredTarget)).toBe(true)
    })
  })

  it('VAC-7 sets the attributes in the undo record with any next call', () => {
    forAnySituation((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify') return
      for (const [key, value] of Object.entries(situation.undo ?? {})) {
        if (value !== null) expect(plan.attributes).toHaveProperty(key)
      }
    })
  })

  it('VAC-7 drops a modification only if the request is in effect', () => {
    forAnySituation((situation) => {
      if (planModification(situation).do !== 'drop') return
      const { requestedTarget, currentTarget } = situation
      expect([undefined, currentTarget.className]).toContain(requestedTarget.className)
      if (requestedTarget.iops !== undefined) expect(requestedTarget.iops).toBe(currentTarget.iops)
    })
  })

  it('PIO-1 never sends one attribute with two values', () => {
    forAnySituation((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify' || plan.purpose === 'cancel') return
      if (plan.target.className === undefined || plan.target.iops === undefined) return
      const lookup = lookUpClass(plan.target.className)
      if (lookup.is === 'found' && lookup.parameters.iops) expect(lookup.parameters.iops).toBe(plan.target.iops)
    })
  })

  it('VAC-5 does nothing if the request is in effect and no modification is in progress', () => {
    forAnySituation((situation) => {
      const settledSituation: Situation = {
        ...situation,
        requestedTarget: { ...situation.currentTarget, className: undefined },
        currentTarget: { ...situation.currentTarget, className: undefined },
        classStatus: undefined,
        io: { iops: NO_PROGRESS, throughput: NO_PROGRESS },
        hasConditions: false,
        undo: undefined,
      }
      expect(planModification(settledSituation).do).toBe('nothing')
    })
  })

  const STARTED_PROGRESS = { allocatedAmount: '500', status: 'ControllerModifyVolumeInProgress' as const }
  const NO_PROGRESS = { allocatedAmount: undefined, status: undefined }
  const NO_TARGET = { className: undefined, iops: undefined, throughput: undefined }
  const UNANSWERED_SITUATION: Situation = {
    requestedTarget: NO_TARGET,
    usesClasses: true,
    currentTarget: NO_TARGET,
    reportsIo: true,
    classStatus: undefined,
    classTarget: undefined,
    io: { iops: NO_PROGRESS, throughput: NO_PROGRESS },
    hasConditions: true,
    undo: undefined,
    confirmedAttributes: {},
    driverName: DRIVER,
    canModify: true,
    hasFinalResponse: false,
    isBlockedByUse: false,
    rejectedCall: undefined,
    lookUpClass,
  }

  it('VAC-6 PIO-1 replaces a target without a final response with the requested one', () => {
    const plan = planModification({
      ...UNANSWERED_SITUATION,
      requestedTarget: { ...NO_TARGET, className: 'gold' },
      currentTarget: { ...NO_TARGET, iops: '500' },
      classStatus: 'InProgress',
      classTarget: 'silver',
      io: { iops: STARTED_PROGRESS, throughput: NO_PROGRESS },
    })
    const target = { ...NO_TARGET, className: 'gold' }
    expect(plan).toMatchObject({ do: 'modify', target, attributes: { iops: '1000' }, replacedAmounts: ['iops'] })
  })

  it('PIO-5 holds amounts while pods use the volume, but not classes or rollbacks', () => {
    forAnySituation((situation) => {
      const blockedSituation = { ...situation, isBlockedByUse: true, hasFinalResponse: true }
      const plan = planModification(blockedSituation)
      const unblockedPlan = planModification({ ...blockedSituation, isBlockedByUse: false })
      const isAboutAmounts =
        unblockedPlan.do === 'modify' &&
        unblockedPlan.purpose !== 'cancel' &&
        (['iops', 'throughput'] as const).some(
          (name) =>
            unblockedPlan.replacedAmounts.includes(name) ||
            !isSameAmount(unblockedPlan.target[name], situation.currentTarget[name]),
        )
      if (!isAboutAmounts) expect(plan).toEqual(unblockedPlan)
    })
    const requestedTarget = { ...NO_TARGET, iops: '7' }
    const blockedRequest = { ...UNANSWERED_SITUATION, requestedTarget, hasFinalResponse: true, isBlockedByUse: true }
    expect(planModification(blockedRequest)).toMatchObject({ do: 'hold', target: requestedTarget })
    expect(planModification({ ...blockedRequest, requestedTarget: { ...NO_TARGET, className: 'gold' } }).do).toBe(
      'modify',
    )
  })

  it.each([
    ['a class that does not exist', { ...NO_TARGET, className: 'missing' }, 'hold'],
    ['two values for one attribute', { ...NO_TARGET, className: 'gold', iops: '7' }, 'reject'],
    ['a class of another driver', { ...NO_TARGET, className: 'foreign' }, 'reject'],
  ])('VAC-7 rolls back a call for a deleted class without a final response before it handles %s', (...args) => {
    const [, requestedTarget, nextStep] = args
    const currentTarget = { ...NO_TARGET, className: 'silver' }
    const unansweredSituation = {
      ...UNANSWERED_SITUATION,
      requestedTarget,
      currentTarget,
      classStatus: 'InProgress' as const,
      classTarget: 'gone',
    }
    const plan = planModification({ ...unansweredSituation, undo: { zone: '1' } })
    expect(plan).toMatchObject({ do: 'modify', purpose: 'cancel', target: currentTarget })
    expect(plan).toMatchObject({ attributes: { zone: '1', iops: '500', tier: 'cool' } })
    expect(planModification({ ...unansweredSituation, undo: { zone: '1' }, hasFinalResponse: true }).do).toBe(nextStep)
  })

  it('VAC-8 rejects a class of another driver with the requested amounts, but not one that replaced the class in effect', () => {
    const situation = {
      ...UNANSWERED_SITUATION,
      hasFinalResponse: true,
      requestedTarget: { ...NO_TARGET, className: 'foreign' },
    }
    expect(planModification(situation)).toMatchObject({ do: 'reject', target: { className: 'foreign' }, io: [] })
    const requestedTarget = { ...NO_TARGET, className: 'foreign', iops: '7' }
    expect(planModification({ ...situation, requestedTarget })).toMatchObject({ do: 'reject', io: ['iops'] })
    const currentTarget = { ...NO_TARGET, className: 'foreign' }
    expect(planModification({ ...situation, requestedTarget, currentTarget }).do).toBe('hold')
  })
})
