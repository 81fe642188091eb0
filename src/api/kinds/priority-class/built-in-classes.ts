// The priority classes that every cluster has. All names with the prefix `system-` are reserved for them.
import type { PriorityClass } from './priority-class-schema.ts'

export const SYSTEM_PREFIX = 'system-'

export const BUILT_IN_PRIORITY_CLASSES: readonly PriorityClass[] = [
  {
    metadata: { name: 'system-node-critical' },
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
    preemptionPolicy: 'PreemptLowerPriority',
  },
  {
    metadata: { name: 'system-cluster-critical' },
    value: 2_000_000_000,
    description:
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
    preemptionPolicy: 'PreemptLowerPriority',
  },
]

/** Returns why the class is not one of the built-in classes, or undefined if it is one. */
export function builtInProblem({ metadata: { name = '' }, value, globalDefault }: PriorityClass): string | undefined {
  const builtIn = BUILT_IN_PRIORITY_CLASSES.find(({ metadata }) => metadata.name === name)
  if (!builtIn) return `${name} is not a known system priority class`
  if (value !== builtIn.value) return `value of ${name} PriorityClass must be ${builtIn.value}`
  if (globalDefault) return `globalDefault of ${name} PriorityClass must be false`
  return undefined
}
