// Finds the optional feature of a process that needs a right, in the rules of its components.
import { type Component, rulesOf } from '../apiserver/rbac/component-rules.ts'

/**
 * Returns a function that returns the feature with a rule for the verb and resource. It returns undefined if a component
 * always needs the right, or if no rule has it.
 */
export function createFeatureLookup(
  components: readonly Component[],
): (verb: string, resource: string) => string | undefined {
  const rules = components.flatMap(rulesOf)
  return (verb, resource) => {
    const features = rules
      .filter(
        ({ verbs, resources }) => verbs.includes(verb) && (resources.includes(resource) || resources.includes('*')),
      )
      .map(({ feature }) => feature)
    return features.every((feature) => feature !== undefined) ? features[0] : undefined
  }
}
