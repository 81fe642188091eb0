// Determines whether a node can reach a volume: one of the volume's node selector terms must match the node. A term
// matches if all its requirements match, and an empty term matches no node. Every node can reach a volume without node
// affinity. existsOnlyOn and possibleNodeNamesOf find volumes that are lost with a node.
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../api/kinds/shared/references-schema.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'

export interface NodeIdentity {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

export function isReachableFrom({ spec }: Readonly<PersistentVolume>, node: NodeIdentity): boolean {
  const requiredTerms = spec?.nodeAffinity?.required
  return !requiredTerms || requiredTerms.nodeSelectorTerms.some((term) => matchesTerm(term, node))
}

const HOSTNAME_LABEL = 'kubernetes.io/hostname'

/**
 * Whether the volume's data exists on this node only: every term of its node affinity requires the name of this node, as
 * the metadata field, as the label kubernetes.io/hostname, or as the value of a driver's topology label. A volume of a
 * zone does not exist on one node only, even if the zone has one node.
 */
export function existsOnlyOn({ spec }: Readonly<PersistentVolume>, node: NodeIdentity): boolean {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return terms.length > 0 && terms.every((term) => matchesTerm(term, node) && namesNode(term, node))
}

function namesNode({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, { name }: NodeIdentity): boolean {
  const hasOneValue = ({ operator, values }: NodeSelectorRequirement) => operator === 'In' && values?.length === 1
  return (
    matchFields.some((requirement) => hasOneValue(requirement) && requirement.key === 'metadata.name') ||
    matchExpressions.some(
      (requirement) =>
        hasOneValue(requirement) && (requirement.key === HOSTNAME_LABEL || requirement.values?.[0] === name),
    )
  )
}

/** Returns the names that the volume's only node may have: all values that its node affinity lists with `In`. */
export function possibleNodeNamesOf({ spec }: Readonly<PersistentVolume>): string[] {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  const requirements = terms.flatMap(({ matchExpressions = [], matchFields = [] }) => [
    ...matchExpressions,
    ...matchFields,
  ])
  return [...new Set(requirements.flatMap(({ operator, values = [] }) => (operator === 'In' ? values : [])))]
}

function matchesTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  { name, labels }: NodeIdentity,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  return (
    matchExpressions.every((requirement) =>
      matchesRequirement(requirement, Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined),
    ) &&
    matchFields.every((requirement) =>
      matchesRequirement(requirement, requirement.key === 'metadata.name' ? name : undefined),
    )
  )
}

function matchesRequirement({ operator, values = [] }: NodeSelectorRequirement, actual: string | undefined): boolean {
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
      return satisfiesComparison(actual, operator, values[0])
  }
}

/** Whether `actual` is greater or less than `limit`. Returns false unless both are integers of at most 19 digits. */
export function satisfiesComparison(
  actual: string | undefined,
  operator: 'Gt' | 'Lt',
  limit: string | undefined,
): boolean {
  if (!isInteger(actual) || !isInteger(limit)) return false
  return operator === 'Gt' ? BigInt(actual) > BigInt(limit) : BigInt(actual) < BigInt(limit)
}

const isInteger = (text: string | undefined): text is string => text !== undefined && /^-?\d{1,19}$/.test(text)
