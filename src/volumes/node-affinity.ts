// From which nodes a volume can be reached: one of its terms must hold, and a term holds when all its conditions do.
// A term without conditions holds for no node; a volume without affinity can be reached from everywhere.
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../api/kinds/shared/references-schema.ts'
import type { Volume } from './matching.ts'

export interface NodeFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

export function isReachableFrom({ spec }: Volume, node: NodeFacts): boolean {
  const required = spec?.nodeAffinity?.required
  return !required || required.nodeSelectorTerms.some((term) => holds(term, node))
}

function holds({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, { name, labels }: NodeFacts): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  return (
    matchExpressions.every((one) => meets(one, Object.hasOwn(labels, one.key) ? labels[one.key] : undefined)) &&
    matchFields.every((one) => meets(one, one.key === 'metadata.name' ? name : undefined))
  )
}

function meets({ operator, values = [] }: NodeSelectorRequirement, actual: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return actual !== undefined && values.includes(actual)
    case 'NotIn':
      return actual === undefined || !values.includes(actual)
    case 'Exists':
      return actual !== undefined
    case 'DoesNotExist':
      return actual === undefined
    case 'Gt':
    case 'Lt':
      return isOrdered(operator, actual, values[0])
  }
}

function isOrdered(operator: 'Gt' | 'Lt', actual: string | undefined, limit: string | undefined): boolean {
  if (!isWhole(actual) || !isWhole(limit)) return false
  return operator === 'Gt' ? BigInt(actual) > BigInt(limit) : BigInt(actual) < BigInt(limit)
}

const isWhole = (text: string | undefined): text is string => text !== undefined && /^-?\d{1,19}$/.test(text)
