// The switches an operator has (--feature-gates). All are on by default; what was written while a gate
// was on is kept while it is off.

export const FEATURE_GATES = [
  'VolumeAttributesClass',
  'VolumeProvisionedIO',
  'RecoverExpansionFailure',
  'CSIStorageCapacity',
] as const
export type FeatureGate = (typeof FEATURE_GATES)[number]

/** Other names a gate is known by. */
const ALIASES: Record<string, FeatureGate> = { RecoverVolumeExpansionFailure: 'RecoverExpansionFailure' }

export interface FeatureGates {
  enabled(gate: FeatureGate): boolean
}

/** Parses `A=true,B=false`. Throws with a message for the user when a name or value is not known. */
export function parseFeatureGates(text = ''): FeatureGates {
  const off = new Set<FeatureGate>()
  for (const part of text.split(',').map((piece) => piece.trim())) {
    if (part === '') continue
    const [name = '', value = ''] = part.split('=').map((piece) => piece.trim())
    const gate = ALIASES[name] ?? FEATURE_GATES.find((known) => known === name)
    if (!gate) throw new Error(`unknown feature gate "${name}"; known gates: ${FEATURE_GATES.join(', ')}`)
    if (!/^(true|false)$/i.test(value)) {
      throw new Error(`feature gate ${name} has value "${value}"; write ${name}=true or ${name}=false`)
    }
    if (value.toLowerCase() === 'false') off.add(gate)
    else off.delete(gate)
  }
  return { enabled: (gate) => !off.has(gate) }
}

export const allGatesOn: FeatureGates = { enabled: () => true }
