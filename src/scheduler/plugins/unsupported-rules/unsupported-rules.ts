// Rejects pods with a required rule that this scheduler does not implement: required pod affinity and anti-affinity, strict
// topology spread constraints, and resource claims. Preferred rules are ignored.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { Plugin } from '../../framework/plugin.ts'
import { SKIP, unresolvable } from '../../framework/status.ts'

export const unsupportedRules: Plugin<never> = {
  name: 'UnsupportedRules',
  events: [], // only a change to the pod's spec helps, and that requeues the pod
  preFilter({ pod }) {
    const field = unsupportedField(pod)
    if (field === undefined) return SKIP
    const message = `this scheduler does not support ${field}: remove it, or set spec.schedulerName to another scheduler`
    return unresolvable({ type: 'UnsupportedRule', subject: field, message })
  },
  signPod: ({ pod }) => unsupportedField(pod),
}

function unsupportedField({ spec }: Readonly<Pod>): string | undefined {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {}
  for (const [name, rules] of Object.entries({ podAffinity, podAntiAffinity })) {
    const requiredTerms = rules?.requiredDuringSchedulingIgnoredDuringExecution
    if (requiredTerms?.length) return `spec.affinity.${name}.requiredDuringSchedulingIgnoredDuringExecution`
  }
  const isStrict = spec?.topologySpreadConstraints?.some(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
  if (isStrict) return 'spec.topologySpreadConstraints with whenUnsatisfiable DoNotSchedule'
  return spec?.resourceClaims?.length ? 'spec.resourceClaims' : undefined
}
