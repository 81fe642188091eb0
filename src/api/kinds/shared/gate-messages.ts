// Messages about fields whose feature gate is disabled.
import type { FeatureGate } from '../../feature-gates.ts'

/** The Warning for a field that a client set and that is not stored. */
export const droppedFieldMessage = (field: string, value: string, gate: FeatureGate): string =>
  `${field}: ${JSON.stringify(value)} was ignored, because the ${gate} feature gate is disabled`

export const disabledGateMessage = (gate: FeatureGate): string =>
  `update is forbidden when the ${gate} feature gate is disabled`
