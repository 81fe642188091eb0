import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { aPod } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const errorsOf = (spec: object) => tryCreate(podKind, aPod({ spec })).errors
const nodeAffinityOf = (...nodeSelectorTerms: object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
})
const NODE_TERMS = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'

describe('node affinity', () => {
  it('requires at least one term', () => {
    expect(errorsOf(nodeAffinityOf())).toEqual([
      `${NODE_TERMS}: Required value: must have at least one node selector term`,
    ])
  })

  it.each([
    [
      { key: 'zone', operator: 'In' },
      "[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ],
    [
      { key: 'zone', operator: 'Exists', values: ['a'] },
      "[0].matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ],
    [
      { key: 'size', operator: 'Gt', values: [] },
      "[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
    ],
    [
      { key: 'zone', operator: 'Near', values: ['a'] },
      '[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
    ],
    [
      { key: 'a b', operator: 'Exists' },
      '[0].matchExpressions[0].key: Invalid value: "a b": name part must consist of',
    ],
    [{ key: 'zone', operator: 'In', values: ['a b'] }, '[0].matchExpressions[0].values[0]: Invalid value: "a b"'],
  ])('rejects %j', (requirement, message) => {
    const errors = errorsOf(nodeAffinityOf({ matchExpressions: [requirement] }))
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(NODE_TERMS + message)
  })

  it('accepts a field requirement with one node name, and rejects one without a value or with another field', () => {
    expect(
      errorsOf(nodeAffinityOf({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] })),
    ).toEqual([])
    expect(errorsOf(nodeAffinityOf({ matchFields: [{ key: 'metadata.uid', operator: 'In', values: [] }] }))).toEqual([
      `${NODE_TERMS}[0].matchFields[0].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
      `${NODE_TERMS}[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key`,
    ])
  })

  it('accepts preferences with a weight of at most 100, and with values that are not valid label values', () => {
    const errorsOfWeight = (weight: number) => {
      const preference = { matchExpressions: [{ key: 'zone', operator: 'In', values: ['not a label'] }] }
      const preferredTerms = [{ weight, preference }]
      return errorsOf({
        affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferredTerms } },
      })
    }
    expect(errorsOfWeight(100)).toEqual([])
    expect(errorsOfWeight(101)).toEqual([
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100',
    ])
  })
})

describe('pod affinity', () => {
  it.each(['podAffinity', 'podAntiAffinity'])('%s requires a topology key', (affinityType) => {
    const errors = errorsOf({ affinity: { [affinityType]: { requiredDuringSchedulingIgnoredDuringExecution: [{}] } } })
    const field = `spec.affinity.${affinityType}.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey`
    expect(errors[0]).toBe(`${field}: Required value: can not be empty`)
  })
})

describe('topology spread constraints', () => {
  const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }
  it.each([
    [[{ ...constraint, maxSkew: 0 }], '[0].maxSkew: Invalid value: 0: must be greater than 0'],
    [[{ ...constraint, topologyKey: '' }], '[0].topologyKey: Required value: can not be empty'],
    [
      [{ ...constraint, whenUnsatisfiable: 'Wait' }],
      '[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ],
    [[constraint, constraint], '[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'],
    [
      [{ ...constraint, minDomains: 2, whenUnsatisfiable: 'ScheduleAnyway' }],
      '[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway',
    ],
  ])('are rejected: %j', (topologySpreadConstraints, message) => {
    expect(errorsOf({ topologySpreadConstraints })).toEqual([`spec.topologySpreadConstraints${message}`])
  })
})
