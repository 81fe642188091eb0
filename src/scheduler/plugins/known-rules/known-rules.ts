// Refuses by name what this scheduler cannot honour: rules a pod insists on about its distance to other pods, and devices
// that are claimed. Placing such a pod as if it had not asked would be worse than to leave it to another scheduler. What
// it merely prefers is passed over.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import { INDIFFERENT, type Plugin } from '../../plugin.ts'

export const KNOWN_RULES = 'KnownRules'

export const knownRules: Plugin = {
  name: KNOWN_RULES,
  prepare({ pod }) {
    const field = unknownRule(pod)
    if (field === undefined) return INDIFFERENT
    return {
      is: 'hopeless',
      because: `this scheduler does not know ${field}: remove it, or name another scheduler in spec.schedulerName`,
    }
  },
}

function unknownRule({ spec }: Readonly<Pod>): string | undefined {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {}
  for (const [name, rules] of Object.entries({ podAffinity, podAntiAffinity })) {
    const required = rules?.requiredDuringSchedulingIgnoredDuringExecution
    if (required?.length) return `spec.affinity.${name}.requiredDuringSchedulingIgnoredDuringExecution`
  }
  const isStrict = spec?.topologySpreadConstraints?.some((one) => one.whenUnsatisfiable === 'DoNotSchedule')
  if (isStrict) return 'spec.topologySpreadConstraints with whenUnsatisfiable DoNotSchedule'
  return spec?.resourceClaims?.length ? 'spec.resourceClaims' : undefined
}
