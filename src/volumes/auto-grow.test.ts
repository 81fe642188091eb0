import { bigInt, assert as check, integer, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../api/quantity.ts'
import {
  AUTO_GROW,
  AUTO_GROWN,
  type AutoGrowPlan,
  findPolicy,
  growthLimitBytes,
  parsePolicy,
  planAutoGrowth,
} from './auto-grow.ts'
import type { VolumeUsage } from './volume-usage.ts'

const GIB = 1024 ** 3
const NOW_MS = Date.parse('2026-01-01T01:00:00Z')
const POLICY = parsePolicy('threshold=80%,step=20%,max=10Gi,cooldown=10m') as never

interface Situation {
  readonly annotations?: Record<string, string>
  readonly request?: string
  readonly capacity?: string
  readonly state?: string
  readonly usage?: VolumeUsage
  readonly allowsExpansion?: boolean
  readonly shortage?: string
}

const claimOf = ({ annotations = {}, capacity = '5Gi', request = capacity, state }: Situation): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'default', name: 'data', annotations },
    spec: { resources: { requests: { storage: request } } },
    status: {
      phase: 'Bound',
      capacity: { storage: capacity },
      ...(state ? { allocatedResourceStatuses: { storage: state } } : {}),
    },
  }) as PersistentVolumeClaim

const plan = (situation: Situation): AutoGrowPlan =>
  planAutoGrowth({
    claim: claimOf(situation),
    policy: POLICY,
    usage: 'usage' in situation ? situation.usage : { usedBytes: 4.5 * GIB, freeBytes: 0.5 * GIB },
    allowsExpansion: situation.allowsExpansion ?? true,
    shortageFor: () => situation.shortage,
    nowMs: NOW_MS,
  })

describe('parsePolicy', () => {
  it('parses percentages, sizes and durations, with defaults for every key except max', () => {
    expect(parsePolicy('max=100Gi')).toEqual({
      threshold: 0.8,
      step: { share: 0.2 },
      cooldownMs: 600_000,
      maxBytes: 100n * BigInt(GIB),
    })
    expect(parsePolicy(' threshold=90% , step=1Gi,max=2Ti,cooldown=90s ')).toEqual({
      threshold: 0.9,
      step: { bytes: BigInt(GIB) },
      cooldownMs: 90_000,
      maxBytes: 2048n * BigInt(GIB),
    })
  })

  it.each([
    ['', '"" is not KEY=VALUE'],
    ['threshold=80%', 'max is missing'],
    ['max=10Gi,max=20Gi', 'max is set twice'],
    ['max=10Gi,treshold=80%', '"treshold" is not one of threshold, step, max, cooldown'],
    ['max=10Gi,threshold=80', 'threshold "80" is not a percentage from 1% to 99%'],
    ['max=10Gi,threshold=0%', 'threshold "0%" is not a percentage'],
    ['max=10Gi,threshold=100%', 'threshold "100%" is not a percentage'],
    ['max=10Gi,step=0%', 'step "0%" is not a percentage such as 20%, or a size'],
    ['max=10Gi,step=-1Gi', 'step "-1Gi" is not'],
    ['max=lots', 'max "lots" is not a size such as 100Gi'],
    ['max=0', 'max "0" is not a size'],
    ['max=10Gi,cooldown=5', 'cooldown "5" is not a duration such as 10m'],
    ['max=10Gi=20Gi', '"max=10Gi=20Gi" is not KEY=VALUE'],
    ['max=10Gi,', '"" is not KEY=VALUE'],
  ])('rejects %j', (text, problem) => {
    expect(parsePolicy(text)).toEqual({ problem: expect.stringContaining(problem) })
  })
})

describe('findPolicy', () => {
  const storageClass = (policy: string) =>
    ({ metadata: { name: 'fast', annotations: { [AUTO_GROW]: policy } }, provisioner: 'p' }) as never

  it('returns the policy of the claim or else of its class, none for off, and the reason if the policy is invalid', () => {
    const own = claimOf({ annotations: { [AUTO_GROW]: 'max=1Gi' } })
    expect(findPolicy(own, storageClass('max=2Gi'))).toMatchObject({ from: 'claim', policy: { maxBytes: BigInt(GIB) } })
    expect(findPolicy(claimOf({}), storageClass('max=2Gi'))).toMatchObject({ from: 'class' })
    expect(findPolicy(claimOf({ annotations: { [AUTO_GROW]: 'off' } }), storageClass('max=2Gi'))).toEqual({
      is: 'none',
    })
    expect(findPolicy(claimOf({}), undefined)).toEqual({ is: 'none' })
    expect(findPolicy(claimOf({}), storageClass('max=x'))).toEqual({
      is: 'invalid',
      message: `The annotation ${AUTO_GROW} of the class "fast" is invalid: max "x" is not a size such as 100Gi. The claim does not grow automatically.`,
    })
  })
})

describe('planAutoGrowth', () => {
  it('adds the step to the capacity when the used bytes or inodes reach the threshold', () => {
    expect(plan({})).toEqual({
      do: 'grow',
      from: '5Gi',
      to: '6Gi',
      record: `2026-01-01T01:00:00.000Z ${5 * GIB} 6Gi 10Gi`,
      message: '90% of 5Gi used: growing from 5Gi to 6Gi',
    })
    const inodes = { usedBytes: 0, freeBytes: 5 * GIB, inodes: 100, inodesUsed: 80 }
    expect(plan({ usage: inodes })).toMatchObject({ do: 'grow' })
    expect(plan({ usage: { ...inodes, inodesUsed: 79 } })).toMatchObject({ do: 'nothing' })
    expect(plan({ request: '1Gi' })).toMatchObject({ to: '6Gi' })
  })

  it('stops at the maximum, and if the class does not allow expansion', () => {
    expect(plan({ capacity: '9Gi' })).toMatchObject({ do: 'grow', to: '10Gi' })
    expect(plan({ capacity: '10Gi' })).toMatchObject({
      do: 'stop',
      reason: 'max',
      message: expect.stringContaining('its maximum of 10Gi'),
    })
    expect(plan({ allowsExpansion: false })).toMatchObject({ do: 'stop', reason: 'class' })
  })

  it('PLUS-12 stops with the shortage as the reason if the free capacity is too small', () => {
    expect(plan({ shortage: 'only 1Mi is free' })).toEqual({
      do: 'stop',
      reason: 'capacity',
      message: '90% of 5Gi used, but only 1Mi is free',
    })
  })

  it('waits for a pending expansion, for the cooldown, and for a measurement after the last growth', () => {
    expect(plan({ request: '6Gi' })).toMatchObject({ do: 'wait', message: 'an expansion to 6Gi is pending' })
    expect(plan({ state: 'NodeResizePending' })).toMatchObject({ do: 'wait' })
    const grown = (time: string, sizeBytes: number) => ({ annotations: { [AUTO_GROWN]: `${time} ${sizeBytes}` } })
    expect(plan(grown('2026-01-01T00:55:00Z', 4 * GIB))).toMatchObject({ do: 'wait', afterMs: 300_000 })
    expect(plan(grown('2026-01-01T00:50:00Z', 4 * GIB))).toMatchObject({ do: 'grow' })
    expect(plan(grown('2026-01-01T00:00:00Z', 5 * GIB))).toMatchObject({
      do: 'wait',
      message: expect.stringContaining('before its last growth'),
    })
    expect(plan({ annotations: { [AUTO_GROWN]: 'damaged' } })).toMatchObject({ do: 'grow' })
  })

  it('requests the last whole GiB before a maximum that is not a whole GiB, because drivers round sizes up', () => {
    const planTo = (capacity: string, max: string) => {
      const policy = parsePolicy(`step=20%,max=${max}`) as never
      const usage = { usedBytes: 9, freeBytes: 1 }
      const claim = claimOf({ capacity })
      return planAutoGrowth({
        claim,
        policy,
        usage,
        allowsExpansion: true,
        shortageFor: () => undefined,
        nowMs: NOW_MS,
      })
    }
    expect(planTo('9Gi', '10752Mi')).toMatchObject({ to: '10Gi' })
    expect(planTo('10Gi', '10752Mi')).toMatchObject({ to: '10752Mi' })
    expect(planTo('8Gi', '10Gi')).toMatchObject({ to: '9831Mi' })
    expect(planTo('1Gi', '1500Mi')).toMatchObject({ to: '1229Mi' })
  })

  it('lowers the request if the driver rejects the size that automatic growth requested', () => {
    const grown = (rejections = '') => ({ [AUTO_GROWN]: `2025-12-31T00:00:00Z ${5 * GIB} 6Gi 10Gi${rejections}` })
    const rejected = { request: '6Gi', state: 'ControllerResizeInfeasible' }
    expect(plan({ annotations: grown(), ...rejected })).toMatchObject({
      do: 'lower',
      to: '5Gi',
      record: expect.stringMatching(/ 6Gi 10Gi 1$/),
      message: expect.stringContaining('the driver rejected an expansion from 5Gi to 6Gi with the maximum 10Gi'),
    })
    expect(plan({ annotations: grown(' 1'), ...rejected })).toMatchObject({ record: expect.stringMatching(/ 2$/) })
    expect(plan({ annotations: grown(), ...rejected, request: '7Gi' })).toMatchObject({ do: 'wait' })
  })

  it('does nothing for a claim that is not bound or is being deleted', () => {
    const planFor = (claim: object) =>
      planAutoGrowth({
        claim: { ...claimOf({}), ...claim },
        policy: POLICY,
        usage: { usedBytes: 9, freeBytes: 1 },
        allowsExpansion: true,
        shortageFor: () => undefined,
        nowMs: NOW_MS,
      })
    expect(planFor({ status: { phase: 'Pending' } })).toEqual({ do: 'nothing', message: 'the claim is not bound' })
    const metadata = { namespace: 'default', name: 'data', deletionTimestamp: '2026-01-01T00:00:00Z' }
    expect(planFor({ metadata })).toEqual({ do: 'nothing', message: 'the claim is being deleted' })
  })

  it('does nothing if the usage is not known', () => {
    expect(plan({ usage: undefined })).toMatchObject({ do: 'nothing', message: 'the usage of the volume is not known' })
    expect(plan({ usage: { inodes: 1, inodesUsed: 1 } })).toMatchObject({ do: 'nothing' })
  })

  it('plans only sizes above the capacity and up to the maximum', () => {
    check(
      property(
        bigInt(1n, 2n ** 50n),
        bigInt(1n, 2n ** 50n),
        integer({ min: 1, max: 1000 }),
        (capacityBytes, maxBytes, step) => {
          const capacity = formatQuantity(quantityFromBytes(capacityBytes))
          const policy = { threshold: 0.5, step: { share: step / 100 }, maxBytes, cooldownMs: 0 }
          const result = planAutoGrowth({
            claim: claimOf({ capacity }),
            policy,
            usage: { usedBytes: 1, freeBytes: 0 },
            allowsExpansion: true,
            shortageFor: () => undefined,
            nowMs: NOW_MS,
          })
          if (result.do !== 'grow') return result.do === 'stop' && capacityBytes >= maxBytes
          const target = quantityToBytes(result.to)
          return target > capacityBytes && target <= maxBytes
        },
      ),
    )
  })
})

describe('growthLimitBytes', () => {
  it('returns the maximum only for a size that automatic growth requested', () => {
    const limitOf = (request: string, record: string) =>
      growthLimitBytes(claimOf({ request, annotations: { [AUTO_GROWN]: `2026-01-01T00:00:00Z 1 ${record}` } }))
    expect(limitOf('6Gi', '6Gi 10Gi')).toBe(10n * BigInt(GIB))
    expect(limitOf('7Gi', '6Gi 10Gi')).toBeUndefined()
    expect(limitOf('6Gi', '6Gi 5Gi')).toBeUndefined()
    expect(limitOf('6Gi', '')).toBeUndefined()
    expect(growthLimitBytes(claimOf({}))).toBeUndefined()
  })
})
