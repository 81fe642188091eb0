import { describe, expect, it } from 'vitest'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { findDefaultPriorityClass } from './default-priority-class.ts'
import { priorityClassKind as kind } from './priority-class.ts'

const aClass = (fields: object = {}) => ({ metadata: { name: 'high' }, value: 1000, ...fields })
const RESERVED =
  "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "

describe('a priority class', () => {
  it.each<[string, object]>([
    ['the highest value for users', { value: 1_000_000_000 }],
    ['a negative value', { value: -2_147_483_648 }],
    ['the policy Never', { preemptionPolicy: 'Never' }],
    ['a built-in class', { metadata: { name: 'system-node-critical' }, value: 2_000_001_000 }],
  ])('SYS-27 accepts %s', (_case, fields) => {
    expect(tryCreate(kind, aClass(fields)).errors).toEqual([])
  })

  it('SYS-27 preempts by default', () => {
    expect(tryCreate(kind, aClass()).object).toMatchObject({ preemptionPolicy: 'PreemptLowerPriority' })
  })

  it.each<[string, object]>([
    ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000', { value: 1_000_000_001 }],
    [
      'preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
      { preemptionPolicy: 'Always' },
    ],
    [`${RESERVED}system-mine is not a known system priority class`, { metadata: { name: 'system-mine' } }],
    [
      `${RESERVED}value of system-cluster-critical PriorityClass must be 2000000000`,
      { metadata: { name: 'system-cluster-critical' }, value: 7 },
    ],
    [
      `${RESERVED}globalDefault of system-cluster-critical PriorityClass must be false`,
      { metadata: { name: 'system-cluster-critical' }, value: 2_000_000_000, globalDefault: true },
    ],
  ])('SYS-27 rejects: %s', (message, fields) => {
    expect(tryCreate(kind, aClass(fields)).errors).toEqual([message])
  })

  it.each<[string, (draft: Draft) => void]>([
    ['value: Forbidden: may not be changed in an update.', (draft) => (draft.value = 2000)],
    ['preemptionPolicy: Invalid value: "Never": field is immutable', (draft) => (draft.preemptionPolicy = 'Never')],
  ])('SYS-27 cannot change: %s', (message, change) => {
    expect(tryUpdate(kind, tryCreate(kind, aClass()).object, change).errors).toEqual([message])
  })

  it('SYS-27 can change its description and whether it is the default', () => {
    const { errors } = tryUpdate(kind, tryCreate(kind, aClass()).object, (draft) => {
      draft.description = 'new'
      draft.globalDefault = true
    })
    expect(errors).toEqual([])
  })

  it('has the Kubernetes columns and the short name pc', () => {
    expect(kind.shortNames).toEqual(['pc'])
    expect(kind.columns.map(({ name }) => name)).toEqual(['Name', 'Value', 'Global-Default', 'Age', 'PreemptionPolicy'])
    const { object } = tryCreate(kind, aClass())
    const cells = kind.columns
      .filter(({ name }) => name !== 'Age')
      .map(({ cell }) => cell(object as never, { nowMs: 0 }))
    expect(cells).toEqual(['high', 1000, false, 'PreemptLowerPriority'])
  })

  it('SYS-27 is the default if it has the smallest value of several that are marked as default', () => {
    const classes = [{ value: 3, globalDefault: true }, { value: 1 }, { value: 2, globalDefault: true }]
    expect(findDefaultPriorityClass(classes)).toBe(classes[2])
    expect(findDefaultPriorityClass([{ value: 1 }])).toBeUndefined()
  })
})
