// Compares docs/reference/roles.md with the rules in the code. `npx vitest run test/component-rules -u` writes the page.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  COMPONENT_RULES,
  type Component,
  type ComponentRule,
  rulesOf,
} from '../../src/apiserver/rbac/component-rules.ts'
import { componentsOf, ROOT, suitesWithRules } from './suites.ts'

const HEADER = `# Rules of the components

This page lists the rules that every component uses, and the feature that needs each rule. \`stowage rbac print\` prints them
[as roles](../how-to/access.md#roles-for-separate-processes); the components of \`stowage up\` and \`stowage server\` have them as
[roles of their own](../how-to/access.md#components-of-the-server). A rule with the namespace \`own\`
applies only in the namespace of the component. The feature \`transactions\` needs a Stowage server.

Test suites in the folders named under a component run it with these rules alone: a request that they do not grant fails the test.
`

const describeVerbs = ({ verbs }: ComponentRule) => verbs.join(', ')
const quote = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ')
const describeResources = ({ resources, names, paths }: ComponentRule) =>
  paths ? `the path ${quote(paths)}` : names ? `${quote(resources)} named ${quote(names)}` : quote(resources)

function describeComponent(component: Component, suites: readonly string[]): string {
  const rows = rulesOf(component).map(
    (rule) =>
      `| ${describeResources(rule)} | ${describeVerbs(rule)} | ${rule.namespace ?? ''} | ${rule.feature ?? ''} |`,
  )
  const folders = [...new Set(suites.map((suite) => suite.slice(0, suite.lastIndexOf('/'))))].sort()
  const tests = folders.length > 0 ? `\nTested in ${folders.map((folder) => `\`${folder}\``).join(', ')}.\n` : ''
  return `## ${component}\n\n| resources | verbs | namespace | feature |\n|---|---|---|---|\n${rows.join('\n')}\n${tests}`
}

it('SYS-9 docs/reference/roles.md lists the rules of every component, and the folders of the suites that run with them', async () => {
  const suites = suitesWithRules().map((path) => ({ path, components: componentsOf(path) }))
  const components = (Object.keys(COMPONENT_RULES) as Component[]).sort()
  const sections = components.map((component) =>
    describeComponent(
      component,
      suites.filter(({ components: tested }) => tested.has(component)).map(({ path }) => path),
    ),
  )
  await expect([HEADER, ...sections].join('\n')).toMatchFileSnapshot(join(ROOT, 'docs/reference/roles.md'))
})
