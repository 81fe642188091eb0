import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planModification, recordedTarget } from './plan-modification.ts'
import { type ClassLookup, isUncertain, type Situation } from './situation.ts'
import { sameAmount, sameTarget } from './target.ts'

const DRIVER = 'disks.example.com'
const CLASSES: Readonly<Record<string, ClassLookup>> = {
  silver: { is: 'found', driverName: DRIVER, parameters: { iops: '500', tier: 'cool' } },
  gold: { is: 'found', driverName: DRIVER, parameters: { iops: '1000' } },
  theirs: { is: 'found', driverName: 'other.example.com', parameters: { iops: '1' } },
  unseen: { is: 'unknown' },
}
const classOf = (name: string): ClassLookup => CLASSES[name] ?? { is: 'missing' }

const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })
const aClassName = fc.constantFrom('silver', 'gold', 'theirs', 'unseen', 'nowhere')
const anAmount = fc.constantFrom('500', '1000', '7')
const aTarget = fc.record({
  className: maybe(aClassName),
  iops: maybe(anAmount),
  throughput: maybe(fc.constant('1Mi')),
})
const aProgress = fc.record({
  allocated: maybe(anAmount),
  status: maybe(
    fc.constantFrom(
      'ControllerModifyVolumePending' as const,
      'ControllerModifyVolumeInProgress' as const,
      'ControllerModifyVolumeFailed' as const,
    ),
  ),
})
const aSituation: fc.Arbitrary<Situation> = fc.record({
  wanted: aTarget,
  usesClasses: fc.constant(true),
  inEffect: aTarget,
  classStatus: maybe(fc.constantFrom('Pending' as const, 'InProgress' as const, 'Infeasible' as const)),
  classTarget: maybe(aClassName),
  io: fc.record({ iops: aProgress, throughput: aProgress }),
  hasConditions: fc.boolean(),
  undo: maybe(fc.dictionary(fc.constantFrom('iops', 'tier', 'zone'), fc.option(fc.constantFrom('1', '2')))),
  confirmed: fc.dictionary(fc.constantFrom('iops', 'tier'), fc.constantFrom('1', '2')),
  driverName: fc.constant(DRIVER),
  canModify: fc.boolean(),
  isAnswered: fc.boolean(),
  isHeldByUse: fc.boolean(),
  rejected: fc.constant(undefined),
  classOf: fc.constant(classOf),
})

const always = (check: (situation: Situation) => void) => fc.assert(fc.property(aSituation, check), { numRuns: 5_000 })

describe('planModification', () => {
  it('VAC-8 never calls a driver without MODIFY_VOLUME, for another driver’s class, or without attributes', () => {
    always((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify') return
      expect(situation.canModify).toBe(true)
      if (plan.purpose === 'change') expect(plan.target.className).not.toBe('theirs')
      expect(Object.keys(plan.attributes)).not.toHaveLength(0)
    })
  })

  it('VAC-6 repeats a call without a final response, unless the claim rolls back', () => {
    always((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify' || plan.purpose === 'cancel' || !isUncertain(situation)) return
      const recorded = recordedTarget(situation)
      const lookup = recorded.className === undefined ? undefined : classOf(recorded.className)
      const isCallable = lookup === undefined || (lookup.is === 'found' && lookup.driverName === DRIVER)
      const parameters = lookup?.is === 'found' ? lookup.parameters : {}
      const isConflict =
        recorded.iops !== undefined && parameters.iops !== undefined && recorded.iops !== parameters.iops
      const isEmpty = Object.keys(parameters).length === 0 && !recorded.iops && !recorded.throughput
      if (isCallable && !isConflict && !isEmpty) expect(sameTarget(plan.target, recorded)).toBe(true)
    })
  })

  it('VAC-7 restores the attributes in the undo record with any next call', () => {
    always((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify') return
      for (const [key, value] of Object.entries(situation.undo ?? {})) {
        if (value !== null) expect(plan.attributes).toHaveProperty(key)
      }
    })
  })

  it('VAC-7 drops a modification only if the request is in effect', () => {
    always((situation) => {
      if (planModification(situation).do !== 'drop') return
      const { wanted, inEffect } = situation
      expect([undefined, inEffect.className]).toContain(wanted.className)
      if (wanted.iops !== undefined) expect(wanted.iops).toBe(inEffect.iops)
    })
  })

  it('PIO-1 never sends one attribute with two values', () => {
    always((situation) => {
      const plan = planModification(situation)
      if (plan.do !== 'modify' || plan.purpose === 'cancel') return
      if (plan.target.className === undefined || plan.target.iops === undefined) return
      const found = classOf(plan.target.className)
      if (found.is === 'found' && found.parameters.iops) expect(found.parameters.iops).toBe(plan.target.iops)
    })
  })

  it('VAC-5 does nothing if the request is in effect and no modification is in progress', () => {
    always((situation) => {
      const nothing = { allocated: undefined, status: undefined }
      const settled: Situation = {
        ...situation,
        wanted: { ...situation.inEffect, className: undefined },
        inEffect: { ...situation.inEffect, className: undefined },
        classStatus: undefined,
        io: { iops: nothing, throughput: nothing },
        hasConditions: false,
        undo: undefined,
      }
      expect(planModification(settled).do).toBe('nothing')
    })
  })

  const begun = { allocated: '500', status: 'ControllerModifyVolumeInProgress' as const }
  const none = { allocated: undefined, status: undefined }
  const nothing = { className: undefined, iops: undefined, throughput: undefined }
  const unanswered: Situation = {
    wanted: nothing,
    usesClasses: true,
    inEffect: nothing,
    classStatus: undefined,
    classTarget: undefined,
    io: { iops: none, throughput: none },
    hasConditions: true,
    undo: undefined,
    confirmed: {},
    driverName: DRIVER,
    canModify: true,
    isAnswered: false,
    isHeldByUse: false,
    rejected: undefined,
    classOf,
  }

  it('VAC-6 PIO-4 does not resend a rejected class with amounts without a final response', () => {
    const plan = planModification({
      ...unanswered,
      classStatus: 'Infeasible',
      classTarget: 'silver',
      io: { iops: begun, throughput: none },
    })
    expect(plan).toMatchObject({ do: 'modify', target: { ...nothing, iops: '500' }, attributes: { iops: '500' } })
  })

  it('VAC-6 PIO-1 repeats the call for a class that replaces the claim’s amount', () => {
    const plan = planModification({
      ...unanswered,
      wanted: { ...nothing, className: 'silver', iops: '7' },
      inEffect: { ...nothing, iops: '500' },
      classStatus: 'InProgress',
      classTarget: 'gold',
      io: { iops: begun, throughput: none },
    })
    const target = { ...nothing, className: 'gold' }
    expect(plan).toMatchObject({ do: 'modify', target, attributes: { iops: '1000' }, replaced: ['iops'] })
  })

  it('PIO-5 holds amounts while pods use the volume, but not classes and rollbacks', () => {
    always((situation) => {
      const held = { ...situation, isHeldByUse: true, isAnswered: true }
      const plan = planModification(held)
      const free = planModification({ ...held, isHeldByUse: false })
      const isAboutAmounts =
        free.do === 'modify' &&
        free.purpose !== 'cancel' &&
        (['iops', 'throughput'] as const).some(
          (name) => free.replaced.includes(name) || !sameAmount(free.target[name], situation.inEffect[name]),
        )
      if (!isAboutAmounts) expect(plan).toEqual(free)
    })
    const wanted = { ...nothing, iops: '7' }
    const held = { ...unanswered, wanted, isAnswered: true, isHeldByUse: true }
    expect(planModification(held)).toMatchObject({ do: 'hold', target: wanted })
    expect(planModification({ ...held, wanted: { ...nothing, className: 'gold' } }).do).toBe('modify')
  })

  it.each([
    ['a class that does not exist', { ...nothing, className: 'nowhere' }, 'hold'],
    ['two values for one attribute', { ...nothing, className: 'gold', iops: '7' }, 'refuse'],
  ])('VAC-7 %s, after a deleted class without a final response: rolls back first', (...given) => {
    const [, wanted, then] = given
    const inEffect = { ...nothing, className: 'silver' }
    const left = { ...unanswered, wanted, inEffect, classStatus: 'InProgress' as const, classTarget: 'gone' }
    const plan = planModification({ ...left, undo: { zone: '1' } })
    expect(plan).toMatchObject({ do: 'modify', purpose: 'cancel', target: inEffect })
    expect(plan).toMatchObject({ attributes: { zone: '1', iops: '500', tier: 'cool' } })
    expect(planModification({ ...left, undo: { zone: '1' }, isAnswered: true }).do).toBe(then)
  })
})
