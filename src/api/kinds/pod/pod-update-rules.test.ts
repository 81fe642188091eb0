import { describe, expect, it } from 'vitest'
import { tryCreate, tryUpdate } from '../kind.fixture.ts'
import { aPod, type PodOptions } from './pod.fixture.ts'
import { podKind } from './pod.ts'

/** Returns the errors of an update from `old` to `next`. */
const errorsOf = (old: PodOptions, next: PodOptions) =>
  tryUpdate(podKind, tryCreate(podKind, aPod(old)).object, aPod(next)).errors

const requiredNodeAffinity = (...nodeSelectorTerms: object[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
})
const zoneRequirement = (...values: string[]) => ({ key: 'zone', operator: 'In', values })

describe('validatePodUpdate', () => {
  it.each<[string, PodOptions, PodOptions]>([
    ['no change', {}, {}],
    ['another image', {}, { container: { image: 'postgres:18' } }],
    ['a deadline', {}, { spec: { activeDeadlineSeconds: 60 } }],
    ['a shorter deadline', { spec: { activeDeadlineSeconds: 60 } }, { spec: { activeDeadlineSeconds: 30 } }],
    [
      'another toleration',
      { spec: { tolerations: [{ key: 'a', operator: 'Exists' }] } },
      {
        spec: {
          tolerations: [
            { key: 'b', operator: 'Exists' },
            { key: 'a', operator: 'Exists' },
          ],
        },
      },
    ],
    [
      'other tolerationSeconds',
      { spec: { tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute' }] } },
      { spec: { tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }] } },
    ],
    [
      'the removal of a gate',
      { spec: { schedulingGates: [{ name: 'a' }, { name: 'b' }] } },
      { spec: { schedulingGates: [{ name: 'b' }] } },
    ],
    [
      'a narrower node selector while gated',
      { spec: { schedulingGates: [{ name: 'a' }] } },
      { spec: { schedulingGates: [{ name: 'a' }], nodeSelector: { disk: 'ssd' } } },
    ],
    [
      'a node affinity while gated if there was none',
      { spec: { schedulingGates: [{ name: 'a' }] } },
      {
        spec: {
          schedulingGates: [{ name: 'a' }],
          affinity: requiredNodeAffinity({ matchExpressions: [zoneRequirement('x')] }),
        },
      },
    ],
    [
      'a narrower node affinity while gated',
      {
        spec: {
          schedulingGates: [{ name: 'a' }],
          affinity: requiredNodeAffinity({ matchExpressions: [zoneRequirement('x')] }),
        },
      },
      {
        spec: {
          schedulingGates: [{ name: 'a' }],
          affinity: requiredNodeAffinity({ matchExpressions: [zoneRequirement('x'), zoneRequirement('y')] }),
        },
      },
    ],
  ])('accepts %s', (_case, old, next) => {
    expect(errorsOf(old, next)).toEqual([])
  })

  it.each<[string, PodOptions, PodOptions, string]>([
    [
      'another container',
      {},
      {
        spec: {
          containers: [
            { name: 'a', image: 'a' },
            { name: 'b', image: 'b' },
          ],
        },
      },
      'spec.containers: Forbidden: pod updates may not add or remove containers',
    ],
    [
      'a later deadline',
      { spec: { activeDeadlineSeconds: 30 } },
      { spec: { activeDeadlineSeconds: 60 } },
      'spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value',
    ],
    [
      'the removal of the deadline',
      { spec: { activeDeadlineSeconds: 30 } },
      {},
      'spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value',
    ],
    [
      'the removal of a toleration',
      { spec: { tolerations: [{ key: 'a', operator: 'Exists' }] } },
      {},
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    ],
    [
      'another gate',
      {},
      { spec: { schedulingGates: [{ name: 'a' }] } },
      "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'",
    ],
    [
      'a wider node selector while gated',
      { spec: { schedulingGates: [{ name: 'a' }], nodeSelector: { disk: 'ssd' } } },
      { spec: { schedulingGates: [{ name: 'a' }] } },
      'spec.nodeSelector: Invalid value: {}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
    ],
    [
      'another node affinity while gated',
      {
        spec: {
          schedulingGates: [{ name: 'a' }],
          affinity: requiredNodeAffinity({ matchExpressions: [zoneRequirement('x')] }),
        },
      },
      {
        spec: {
          schedulingGates: [{ name: 'a' }],
          affinity: requiredNodeAffinity({ matchExpressions: [zoneRequirement('x', 'y')] }),
        },
      },
      'only additions are allowed (no mutations or deletions)',
    ],
    ['another node', {}, { spec: { nodeName: 'node-1' } }, '  nodeName: (none) -> "node-1"'],
    ['other volumes', {}, { volumes: [] }, '  volumes: [{"name":"data"'],
    [
      'another command',
      {},
      { container: { command: ['sh'] } },
      'spec: Forbidden: pod updates may not change fields other than ',
    ],
    [
      'a node selector without a gate',
      {},
      { spec: { nodeSelector: { disk: 'ssd' } } },
      '  nodeSelector.disk: (none) -> "ssd"',
    ],
  ])('rejects %s', (_case, old, next, message) => {
    const errors = errorsOf(old, next)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(message)
  })

  it('lists the mutable fields and the rejected changes in the error', () => {
    expect(errorsOf({}, { spec: { hostname: 'db' } })).toEqual([
      'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,' +
        '`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
        '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n' +
        '  hostname: (none) -> "db"',
    ])
  })

  it('does not validate an unchanged spec', () => {
    const { object } = tryCreate(podKind, aPod())
    const invalidPod = { ...object, spec: { ...object.spec!, hostname: 'not.a.label' } }
    const labelledPod = { ...invalidPod, metadata: { ...invalidPod.metadata, labels: { a: 'b' } } }
    expect(tryUpdate(podKind, invalidPod, labelledPod).errors).toEqual([])
  })
})
