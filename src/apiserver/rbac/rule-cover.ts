// Decides whether the rules that a user holds cover other rules, and describes those that they do not cover.
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
  const uncovered: PolicyRule[] = []
  for (const rule of rules) {
    if (ownRules.some((holder) => covers(holder, rule))) continue
    for (const part of partsOf(rule)) {
      if (ownRules.some((holder) => covers(holder, part))) continue
      uncovered.push(part)
      if (uncovered.length >= max) return uncovered
    }
  }
  return uncovered
}

/** Returns how many parts a role has. A role with too many of them takes too long to check. */
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
function covers(holder: PolicyRule, rule: PolicyRule): boolean {
  const heldNames = holder.resourceNames ?? []
  const names = rule.resourceNames ?? []
  return (
    includesAll(holder.verbs, rule.verbs) &&
    includesAll(holder.apiGroups, rule.apiGroups) &&
    coversResources(holder.resources ?? [], rule.resources ?? []) &&
    (heldNames.length === 0 || (names.length > 0 && names.every((name) => heldNames.includes(name)))) &&
    (rule.nonResourceURLs ?? []).every((url) =>
      (holder.nonResourceURLs ?? []).some((pattern) => matchesPath(pattern, url)),
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

/** Describes rules in the form of Kubernetes: `{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`. */
export function describeRules(parts: readonly PolicyRule[]): string[] {
  const merged = new Map<string, PolicyRule>()
  for (const part of parts) {
    const { verbs, ...target } = part
    const key = JSON.stringify(target)
    const previous = part.nonResourceURLs ? undefined : merged.get(key)
    if (previous) merged.set(key, { ...previous, verbs: [...previous.verbs, ...verbs] })
    else merged.set(part.nonResourceURLs ? `${key}${verbs}` : key, part)
  }
  return [...new Set([...merged.values()].map(describeRule))].sort()
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
