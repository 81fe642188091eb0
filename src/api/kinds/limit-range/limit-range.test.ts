import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../feature-gates.ts'
import { tryCreate, tryUpdate } from '../kind.fixture.ts'
import { limitRangeKind, limitsClaims } from './limit-range.ts'

const aRange = (...limits: object[]) => ({ metadata: { name: 'bounds', namespace: 'shop' }, spec: { limits } })
const errorsOf = (...limits: object[]) => tryCreate(limitRangeKind, aRange(...limits)).errors
const CLAIM_TYPE = 'PersistentVolumeClaim'

/** Returns an item that limits only cpu. */
const machineItem = (amounts: object) => ({
  type: 'example.com/Machine',
  ...Object.fromEntries(Object.entries(amounts).map(([field, amount]) => [field, { cpu: amount }])),
})

describe('LimitRange', () => {
  it('sets an absent default to max, and an absent defaultRequest to default or min, in items for containers', () => {
    const item = { type: 'Container', max: { cpu: '2' }, min: { cpu: '1', memory: '1Gi' } }
    expect(tryCreate(limitRangeKind, aRange(item)).object.spec?.limits).toEqual([
      { ...item, default: { cpu: '2' }, defaultRequest: { cpu: '2', memory: '1Gi' } },
    ])
  })

  it('does not change items for claims', () => {
    const item = { type: CLAIM_TYPE, max: { storage: '10Gi' } }
    expect(tryCreate(limitRangeKind, aRange(item)).object.spec?.limits).toEqual([item])
  })

  it.each([
    [{ type: 'Disk' }, 'spec.limits[0].type: Invalid value: "Disk": must be a standard limit type or fully qualified'],
    [{ type: 'Container', max: { storage: '1Gi' } }, 'must be a standard resource for containers'],
    [{ type: CLAIM_TYPE, max: { storage: '1Gi', disks: '1' } }, 'must be a standard resource type or fully qualified'],
    [
      { type: 'Pod', default: { cpu: '1' } },
      "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
    ],
    [
      { type: 'Pod', defaultRequest: { cpu: '1' } },
      "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
    ],
    [
      { type: CLAIM_TYPE },
      'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
    ],
  ])('rejects %j', (item, message) => {
    expect(errorsOf(item)).toContainEqual(expect.stringContaining(message))
  })

  it('rejects two items of one type', () => {
    const item = { type: CLAIM_TYPE, max: { storage: '1Gi' } }
    expect(errorsOf(item, item)).toEqual([`spec.limits[1].type: Duplicate value: "${CLAIM_TYPE}"`])
  })

  it.each([
    [{ min: '2', max: '1' }, ['min[cpu]: Invalid value: "2": min value 2 is greater than max value 1']],
    [
      { min: '2', defaultRequest: '1' },
      ['defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1'],
    ],
    [
      { defaultRequest: '2', max: '1' },
      ['defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max value 1'],
    ],
    [
      { defaultRequest: '2', default: '1' },
      ['defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default limit value 1'],
    ],
    [{ min: '2', default: '1' }, ['default[cpu]: Invalid value: "2": min value 2 is greater than default value 1']],
    [{ default: '2', max: '1' }, ['default[cpu]: Invalid value: "1": default value 2 is greater than max value 1']],
    [{ maxLimitRequestRatio: '500m' }, ['maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1']],
    [
      { min: '1', max: '2', maxLimitRequestRatio: '3' },
      ['maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
    ],
  ])('reports each inconsistent amount in %j', (amounts, messages) => {
    expect(errorsOf(machineItem(amounts))).toEqual(messages.map((message) => `spec.limits[0].${message}`))
  })

  it('accepts amounts that rise from min to defaultRequest, default and max, with a ratio of at most max/min', () => {
    const amounts = { min: '1', defaultRequest: '1', default: '2', max: '2', maxLimitRequestRatio: '2' }
    expect(errorsOf(machineItem(amounts))).toEqual([])
  })

  it('requires equal default and defaultRequest for resources that cannot be overcommitted', () => {
    const item = { type: 'Container', default: { 'example.com/gpu': '2' }, defaultRequest: { 'example.com/gpu': '1' } }
    expect(errorsOf(item)).toEqual([
      'spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in example.com/gpu',
    ])
  })

  it('PIO-7 accepts bounds of iops and throughput without bounds of storage', () => {
    const item = { type: CLAIM_TYPE, max: { iops: '1500', throughput: '10' }, min: { iops: '10', throughput: '1' } }
    const { object, errors } = tryCreate(limitRangeKind, aRange(item))
    expect(errors).toEqual([])
    expect(object.spec?.limits[0]).toMatchObject({ max: { throughput: '10Mi' }, min: { throughput: '1Mi' } })
  })

  it('PIO-7 applies a Container item with only iops and throughput to claims', () => {
    const item = {
      type: 'Container',
      max: { iops: '1500', throughput: '20' },
      min: { iops: '10', throughput: '1' },
      default: { iops: '100', throughput: '20' },
      defaultRequest: { iops: '100', throughput: '5' },
    }
    expect(errorsOf(item)).toEqual([])
    expect(limitsClaims(item)).toBe(true)
    expect(limitsClaims({ type: 'Container', max: { cpu: '1' } })).toBe(false)
    expect(errorsOf({ ...item, max: { ...item.max, cpu: '1' } })).toContainEqual(
      'spec.limits[0].max[iops]: Invalid value: "iops": must be a standard resource for containers',
    )
  })

  it('PIO-7 compares throughput in one unit', () => {
    expect(errorsOf({ type: CLAIM_TYPE, min: { throughput: '20' }, max: { throughput: '10Mi' } })).toEqual([
      'spec.limits[0].min[throughput]: Invalid value: "20Mi": min value 20Mi is greater than max value 10Mi',
    ])
  })

  it('PIO-7 rejects amounts that a claim cannot request', () => {
    expect(errorsOf({ type: CLAIM_TYPE, max: { iops: '1.5', throughput: '500m' } })).toEqual([
      'spec.limits[0].max[iops]: Invalid value: "1500m": must be an integer',
      'spec.limits[0].max[throughput]: Invalid value: "500m": must be an integer',
    ])
    expect(errorsOf({ type: CLAIM_TYPE, max: { storage: '1Gi' }, default: { iops: '0', storage: '0' } })).toEqual([
      'spec.limits[0].default[iops]: Invalid value: "0": must be greater than zero',
      'spec.limits[0].default[storage]: Invalid value: "0": must be greater than zero',
    ])
    const zeroBounds = { max: { iops: '0' }, min: { iops: '0' }, maxLimitRequestRatio: { throughput: '1.5' } }
    expect(errorsOf({ type: CLAIM_TYPE, ...zeroBounds })).toEqual([])
  })

  it('PIO-7 rejects a defaultRequest above default and max in a Container item', () => {
    const item = {
      type: 'Container',
      max: { iops: '1500', throughput: '10' },
      min: { iops: '10', throughput: '1' },
      default: { iops: '100', throughput: '5' },
      defaultRequest: { iops: '100', throughput: '20' },
    }
    expect(errorsOf(item)).toEqual([
      'spec.limits[0].defaultRequest[throughput]: Invalid value: "20Mi": default request value 20Mi is greater than max value 10Mi',
      'spec.limits[0].defaultRequest[throughput]: Invalid value: "20Mi": default request value 20Mi is greater than default limit value 5Mi',
    ])
  })

  it('rejects iops and throughput while the feature gate is disabled, unless they are already stored', () => {
    const gates = parseFeatureGates('VolumeProvisionedIO=false')
    const body = aRange({ type: CLAIM_TYPE, max: { storage: '1Gi', iops: '10' } })
    expect(tryCreate(limitRangeKind, body, { gates }).errors).toEqual([
      'spec.limits[0].max[iops]: Invalid value: "iops": must be a standard resource type or fully qualified',
    ])
    expect(tryUpdate(limitRangeKind, tryCreate(limitRangeKind, body).object, body, { gates }).errors).toEqual([])
  })
})
