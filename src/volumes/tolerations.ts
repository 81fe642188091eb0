// Whether a toleration covers a taint. An empty key with Exists covers every taint, an empty effect every effect.
import type { Taint } from '../api/kinds/node/node-schema.ts'
import type { Toleration } from '../api/kinds/pod/pod-schema.ts'

export function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false
  if (key && key !== taint.key) return false
  switch (operator ?? 'Equal') {
    case 'Exists':
      return true
    case 'Equal':
      return Boolean(key) && (value ?? '') === (taint.value ?? '')
    case 'Gt':
    case 'Lt':
      return isOrdered(taint.value ?? '', operator as 'Gt' | 'Lt', value ?? '')
    default:
      return false
  }
}

/** The taint's value must lie above or below the toleration's; what is no whole number is covered by neither. */
function isOrdered(actual: string, operator: 'Gt' | 'Lt', limit: string): boolean {
  if (!WHOLE.test(actual) || !WHOLE.test(limit)) return false
  return operator === 'Gt' ? BigInt(actual) > BigInt(limit) : BigInt(actual) < BigInt(limit)
}

const WHOLE = /^-?\d{1,19}$/
