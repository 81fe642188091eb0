// Compares the chart's generated files with the code and the documentation, and the lists in its schema with the code.
// `npx vitest run test/chart -u` writes the files.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isMap, isScalar, type Pair, parse, parseDocument, stringify, type YAMLMap } from 'yaml'
import { type RoleRules, roleRulesOf } from '../../src/apiserver/rbac/component-roles.ts'
import { type Component, rulesOf } from '../../src/apiserver/rbac/component-rules.ts'
import { componentsOf, featuresOf } from '../../src/cli/commands/rbac/select-rules.ts'
import { parseControllers } from '../../src/cli/commands/sidecar/parse-controllers.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const CHART = join(ROOT, 'charts', 'stowage')
const readText = (path: string) => readFile(path, 'utf8')
const readValues = async () => parse(await readText(join(CHART, 'values.yaml')))
const readSchema = async () => JSON.parse(await readText(join(CHART, 'values.schema.json')))

type Json = Record<string, any>

const HEADER = `# The rules of the sidecar by controller and feature, from src/apiserver/rbac/component-rules.ts. Written by
# \`npx vitest run test/chart -u\`. The scope \`namespace\` is that of the release.
`

interface RulesEntry extends Pick<RoleRules, 'rules'> {
  readonly controller: Component
  readonly feature?: string
  readonly scope: 'cluster' | 'namespace'
}

/** Returns the rules of a component, one entry for each feature and scope. */
function entriesOf(controller: Component): RulesEntry[] {
  const componentRules = rulesOf(controller)
  return [...new Set(componentRules.map(({ feature }) => feature))].flatMap((feature) =>
    roleRulesOf(
      componentRules.filter((rule) => rule.feature === feature),
      'own',
    ).map(({ namespace, rules }) => {
      expect(namespace ?? 'own', `${controller} has rules in another namespace`).toBe('own')
      return { controller, ...(feature ? { feature } : {}), scope: namespace ? 'namespace' : 'cluster', rules }
    }),
  )
}

it('SYS-24 the chart has the rules of the sidecar, by controller and feature', async () => {
  const entries = componentsOf('sidecar').flatMap(entriesOf)
  const text = HEADER + stringify({ entries }, { aliasDuplicateObjects: false })
  await expect(text).toMatchFileSnapshot(join(CHART, 'files', 'sidecar-rules.yaml'))
})

it('SYS-24 the chart has the alerts of the documentation', async () => {
  const alerts = await readText(join(ROOT, 'docs', 'how-to', 'alerts.yaml'))
  await expect(alerts).toMatchFileSnapshot(join(CHART, 'files', 'alerts.yaml'))
})

it('the schema of the chart allows the features and controllers of the sidecar', async () => {
  const { rbac, sidecar } = (await readSchema()).properties
  const features = featuresOf('sidecar').filter((name) => !(componentsOf('sidecar') as string[]).includes(name))
  expect(rbac.properties.features.items.enum).toEqual(features)
  expect(sidecar.properties.controllers.items.enum).toEqual([...parseControllers('*').enabledNames])
  // `release` is for a single command, and `operations` and `transactions` for a Stowage server.
  const defaults: readonly string[] = (await readValues()).rbac.features
  expect(features.filter((feature) => !defaults.includes(feature))).toEqual(['operations', 'release', 'transactions'])
})

it('the schema of the chart describes every value, and no other', async () => {
  const pathsOfValues = (value: unknown, properties: Json, path = ''): string[] =>
    Object.entries(value as Json).flatMap(([key, child]) => {
      const schema = properties[key]
      const childPath = `${path}${key}`
      if (!schema) return [`${childPath} is not in the schema`]
      return schema.properties ? pathsOfValues(child, schema.properties, `${childPath}.`) : []
    })
  const pathsOfSchema = (properties: Json, value: Json, path = ''): string[] =>
    Object.entries(properties).flatMap(([key, schema]) => {
      const childPath = `${path}${key}`
      if (!(key in value)) return [`${childPath} has no default`]
      return schema.properties ? pathsOfSchema(schema.properties, value[key], `${childPath}.`) : []
    })
  const values = await readValues()
  const { global: _, ...properties } = (await readSchema()).properties
  expect(pathsOfValues(values, properties)).toEqual([])
  expect(pathsOfSchema(properties, values)).toEqual([])
})

const VALUES_HEADER = `# Values of the Helm chart

The values of \`charts/stowage\` with their defaults. [Install Stowage in a cluster](../how-to/helm.md) shows which ones a deployment needs.
Unknown values and values of a wrong type are rejected before anything is installed.

| value | default | meaning |
|---|---|---|
`

/** Returns a row of the table for each value that the schema does not divide further. */
function listRows(map: YAMLMap, properties: Json, path = ''): string[] {
  return (map.items as Pair<unknown, any>[]).flatMap(({ key, value }, index) => {
    if (!isScalar(key)) throw new Error('a key that is not a scalar')
    const schema = properties[String(key.value)]
    const name = `${path}${key.value}`
    if (isMap(value) && schema.properties) return listRows(value, schema.properties, `${name}.`)
    const comment = (key.commentBefore ?? (index === 0 ? map.commentBefore : '') ?? '').split('\n\n').at(-1)!
    const meaning = comment.replace(/\s+/g, ' ').trim()
    expect(meaning, `${name} has a comment`).not.toBe('')
    const defaultValue = JSON.stringify(value.toJSON())
    return [`| \`${name}\` | ${defaultValue === '""' ? '' : `\`${defaultValue}\``} | ${meaning} |`]
  })
}

it('docs/reference/chart.md lists every value of the chart with its default', async () => {
  const document = parseDocument(await readText(join(CHART, 'values.yaml')))
  const rows = listRows(document.contents as YAMLMap, (await readSchema()).properties)
  await expect(`${VALUES_HEADER}${rows.join('\n')}\n`).toMatchFileSnapshot(join(ROOT, 'docs', 'reference', 'chart.md'))
})

it('docs/how-to/helm.md names only values that the chart has', async () => {
  const guide = await readText(join(ROOT, 'docs', 'how-to', 'helm.md'))
  const values = await readValues()
  const paths = [...guide.matchAll(/(?<![\w./-])([a-z]\w*(?:\.[a-z]\w*)+)(?==|`| )/gi)].map(([, path]) => path!)
  const mentions = [...new Set(paths)].filter((path) => path.split('.')[0]! in values)
  expect(mentions.length).toBeGreaterThan(15)
  const hasValue = (path: string) =>
    path.split('.').reduce<any>((value, key) => (value && key in value ? (value[key] ?? '') : undefined), values) !==
    undefined
  expect(mentions.filter((path) => !hasValue(path))).toEqual([])
})

it('the chart has the version of the program', async () => {
  const { version } = JSON.parse(await readText(join(ROOT, 'package.json')))
  expect(parse(await readText(join(CHART, 'Chart.yaml')))).toMatchObject({ version, appVersion: version })
})
