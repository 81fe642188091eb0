// Checks the kinds of rbac.authorization.k8s.io: roles and their bindings.
import { format, isEqualJson, type Report } from './findings.ts'
import { isDnsSubdomain, isPathSegment } from './names.ts'
import { checkLabelSelector } from './selectors.ts'

const GROUP = 'rbac.authorization.k8s.io'

export const checkRole = ({ rules }: any, report: Report): void => checkRules(rules, report, { allowsPaths: false })

export function checkClusterRole({ rules, aggregationRule }: any, report: Report): void {
  checkRules(rules, report, { allowsPaths: true })
  if (aggregationRule === undefined) return
  const selectors: any[] = aggregationRule.clusterRoleSelectors ?? []
  if (selectors.length === 0) report('aggregationRule.clusterRoleSelectors', 'is empty')
  for (const [i, selector] of selectors.entries())
    checkLabelSelector(selector, `aggregationRule.clusterRoleSelectors[${i}]`, report)
}

function checkRules(rules: any[] | null | undefined, report: Report, { allowsPaths }: { allowsPaths: boolean }): void {
  for (const [i, rule] of (rules ?? []).entries()) {
    const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
    const path = `rules[${i}]`
    if (verbs.length === 0) report(`${path}.verbs`, 'is empty')
    if (nonResourceURLs.length > 0) {
      if (!allowsPaths) report(`${path}.nonResourceURLs`, 'is not allowed in a role')
      if (apiGroups.length + resources.length + resourceNames.length > 0) report(path, 'has both paths and resources')
    } else if (apiGroups.length === 0 || resources.length === 0) report(path, 'has no group or no resource')
  }
}

export const checkRoleBinding = (binding: any, report: Report, old?: any): void =>
  checkBinding(binding, report, old, ['Role', 'ClusterRole'])

export function checkClusterRoleBinding(binding: any, report: Report, old?: any): void {
  checkBinding(binding, report, old, ['ClusterRole'])
  for (const { kind, namespace } of binding.subjects ?? []) {
    if (kind === 'ServiceAccount' && !namespace) report('subjects', 'a service account has no namespace')
  }
}

function checkBinding({ roleRef, subjects = [] }: any, report: Report, old: any, roleKinds: string[]): void {
  if (roleRef.apiGroup !== GROUP) report('roleRef.apiGroup', `${format(roleRef.apiGroup)} instead of ${GROUP}`)
  if (!roleKinds.includes(roleRef.kind)) report('roleRef.kind', `${format(roleRef.kind)} is not a kind of role`)
  if (!isPathSegment(roleRef.name)) report('roleRef.name', `${format(roleRef.name)} is not a valid name`)
  if (old && !isEqualJson(roleRef, old.roleRef)) report('roleRef', 'cannot change')
  for (const [i, { kind, apiGroup = '', name }] of subjects.entries()) {
    const path = `subjects[${i}]`
    if (!name) report(`${path}.name`, 'is empty')
    if (kind === 'ServiceAccount') {
      if (!isDnsSubdomain(name)) report(`${path}.name`, `${format(name)} is not a valid name`)
      if (apiGroup !== '') report(`${path}.apiGroup`, 'is not empty')
    } else if (kind === 'User' || kind === 'Group') {
      if (apiGroup !== GROUP) report(`${path}.apiGroup`, `${format(apiGroup)} instead of ${GROUP}`)
    } else report(`${path}.kind`, `${format(kind)} is not a kind of subject`)
  }
}
