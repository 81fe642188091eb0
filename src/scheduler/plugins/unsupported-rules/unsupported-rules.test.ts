import { describe, expect, it } from 'vitest'
import { aNode, aPod, rejections } from '../plugins.fixture.ts'
import { unsupportedRules } from './unsupported-rules.ts'

describe('UnsupportedRules', () => {
  const rejectionMessage = (spec: object) => rejections(unsupportedRules, aPod(spec), aNode())[0]
  const term = { topologyKey: 'zone', labelSelector: {} }

  it('rejects a pod with a required rule, names the field, and ignores preferred rules', () => {
    const requiredRules = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    expect(rejectionMessage({ affinity: { podAntiAffinity: requiredRules } })).toBe(
      'this scheduler does not support spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution: ' +
        'remove it, or set spec.schedulerName to another scheduler',
    )
    const preferredRules = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] }
    expect(rejectionMessage({ affinity: { podAntiAffinity: preferredRules } })).toBe(undefined)
    const spread = (whenUnsatisfiable: string) => ({
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable }],
    })
    expect(rejectionMessage(spread('DoNotSchedule'))).toContain('topologySpreadConstraints')
    expect(rejectionMessage(spread('ScheduleAnyway'))).toBe(undefined)
  })
})
