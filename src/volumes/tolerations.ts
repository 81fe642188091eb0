// Determines whether a toleration matches a taint. An empty key with the operator Exists matches every key and value;
// an empty effect matches every effect.
import type { Taint } from '../api/kinds/node/node-schema.ts'
import type { Toleration } from '../api/kinds/pod/pod-schema.ts'
import { satisfiesComparison } from './node-affinity.ts'

export function tolerates({ key, operator = 'Equal', value, effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false
  if (key && key !== taint.key) return false
  switch (operator) {
    case 'Exists':
      return true
    case 'Equal':
      return Boolean(key) && (value ?? '') === (taint.value ?? '')
    case 'Gt': // the taint's value is greater than the toleration's
    case 'Lt':
      return satisfiesComparison(taint.value, operator, value)
    default:
      return false
  }
}
