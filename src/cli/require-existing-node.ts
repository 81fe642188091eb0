// Checks that the node that a flag names exists.
import { UsageError } from '../base/usage-error.ts'
import { findSimilarNames, type Snapshot } from '../diagnosis/index.ts'

/** Returns the name, or throws a UsageError with similar names if the node does not exist. */
export function requireExistingNode(name: string, { nodes }: Pick<Snapshot, 'nodes'>): string {
  const names = nodes.map(({ metadata }) => metadata.name)
  if (names.includes(name)) return name
  const similarNames = findSimilarNames(name, names)
  const hint = similarNames.length > 0 ? ` Similar names: ${similarNames.join(', ')}.` : ''
  throw new UsageError(`The node ${name} does not exist.${hint}`)
}
