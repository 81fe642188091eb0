// Finds the optional feature for which a process needs a permission, based on the rules of its components.
import { type Component, rulesOf } from '../apiserver/rbac/component-rules.ts'

/**
 * Returns a function that maps a verb and a resource to the feature that needs them. The function returns undefined if a
 * component always needs the permission, or if no rule grants it.
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
