// Decides whether the rules that a user holds cover other rules, and describes the rules that are not covered.
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { ALL, matchesPath } from './rule-match.ts'

/**
 * Returns the parts of `rules` that none of the user's own rules covers, at most `max` of them: each has one verb and one
 * resource, object or path.
 */
export function uncoveredRules(
  ownRules: readonly PolicyRule[],
  rules: readonly PolicyRule[],
  { max = Number.POSITIVE_INFINITY }: { readonly max?: number } = {},
): PolicyRule[] {
  const uncoveredParts: PolicyRule[] = []
  for (const rule of rules) {
    if (ownRules.some((heldRule) => covers(heldRule, rule))) continue
    for (const part of partsOf(rule)) {
      if (ownRules.some((heldRule) => covers(heldRule, part))) continue
      uncoveredParts.push(part)
      if (uncoveredParts.length >= max) return uncoveredParts
    }
  }
  return uncoveredParts
}

/** Returns the number of parts of a role. A role with too many of them takes too long to check. */
export const countParts = (rules: readonly PolicyRule[]): number =>
  rules.reduce(
    (sum, { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }) =>
      sum +
      verbs.length * (apiGroups.length * resources.length * Math.max(1, resourceNames.length) + nonResourceURLs.length),
    0,
  )

function* partsOf({
  verbs,
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule): Generator<PolicyRule> {
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const part = { apiGroups: [group], resources: [resource], verbs: [verb] }
        if (resourceNames.length === 0) yield part
        for (const name of resourceNames) yield { ...part, resourceNames: [name] }
      }
    }
  }
  for (const url of nonResourceURLs) for (const verb of verbs) yield { nonResourceURLs: [url], verbs: [verb] }
}

/** A requested `*` is covered by a held `*` only, not by a list of all values. */
function covers(heldRule: PolicyRule, rule: PolicyRule): boolean {
  const heldNames = heldRule.resourceNames ?? []
  const names = rule.resourceNames ?? []
  return (
    includesAll(heldRule.verbs, rule.verbs) &&
    includesAll(heldRule.apiGroups, rule.apiGroups) &&
    coversResources(heldRule.resources ?? [], rule.resources ?? []) &&
    (heldNames.length === 0 || (names.length > 0 && names.every((name) => heldNames.includes(name)))) &&
    (rule.nonResourceURLs ?? []).every((url) =>
      (heldRule.nonResourceURLs ?? []).some((pattern) => matchesPath(pattern, url)),
    )
  )
}

const includesAll = (heldValues: readonly string[] = [], values: readonly string[] = []): boolean =>
  heldValues.includes(ALL) || values.every((value) => heldValues.includes(value))

const coversResources = (heldResources: readonly string[], resources: readonly string[]): boolean =>
  heldResources.includes(ALL) ||
  resources.every((resource) => {
    const slash = resource.indexOf('/')
    return heldResources.includes(resource) || (slash >= 0 && heldResources.includes(`${ALL}${resource.slice(slash)}`))
  })

/** Describes rules in the Kubernetes form: `{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`. */
export function describeRules(parts: readonly PolicyRule[]): string[] {
  const mergedRules = new Map<string, PolicyRule>()
  for (const part of parts) {
    const { verbs, ...target } = part
    const key = JSON.stringify(target)
    const previousRule = part.nonResourceURLs ? undefined : mergedRules.get(key)
    if (previousRule) mergedRules.set(key, { ...previousRule, verbs: [...previousRule.verbs, ...verbs] })
    else mergedRules.set(part.nonResourceURLs ? `${key}${verbs}` : key, part)
  }
  return [...new Set([...mergedRules.values()].map(describeRule))].sort()
}

function describeRule({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: PolicyRule): string {
  const lists = {
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  }
  const texts = Object.entries(lists).flatMap(([name, values]) =>
    values && values.length > 0 ? [`${name}:${quoteList(values)}`] : [],
  )
  return `{${texts.join(', ')}}`
}

/** Formats a list as Go does: `["a" "b"]`. */
export const quoteList = (values: readonly string[]): string =>
  `[${values.map((value) => JSON.stringify(value)).join(' ')}]`
