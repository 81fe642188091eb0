// Defines the feature gates and parses --feature-gates. All gates are enabled by default.

export const FEATURE_GATES = [
  'VolumeAttributesClass',
  'VolumeProvisionedIO',
  'RecoverExpansionFailure',
  'CSIStorageCapacity',
] as const
export type FeatureGate = (typeof FEATURE_GATES)[number]

/** Names that Kubernetes uses for the same gate. */
const ALIASES: Record<string, FeatureGate> = { RecoverVolumeExpansionFailure: 'RecoverExpansionFailure' }

export interface FeatureGates {
  enabled(gate: FeatureGate): boolean
}

/** Parses `A=true,B=false`. Throws an error with a message for the user if a name or value is unknown. */
export function parseFeatureGates(text = ''): FeatureGates {
  const disabledGates = new Set<FeatureGate>()
  for (const part of text.split(',').map((item) => item.trim())) {
    if (part === '') continue
    const [name = '', value = ''] = part.split('=').map((item) => item.trim())
    const gate = ALIASES[name] ?? FEATURE_GATES.find((candidate) => candidate === name)
    if (!gate) throw new Error(`unknown feature gate "${name}"; known gates: ${FEATURE_GATES.join(', ')}`)
    if (!/^(true|false)$/i.test(value)) {
      throw new Error(`feature gate ${name} has value "${value}"; write ${name}=true or ${name}=false`)
    }
    if (value.toLowerCase() === 'false') disabledGates.add(gate)
    else disabledGates.delete(gate)
  }
  return { enabled: (gate) => !disabledGates.has(gate) }
}

export const allGatesOn: FeatureGates = { enabled: () => true }
