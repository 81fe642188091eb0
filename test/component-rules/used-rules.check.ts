// Fails if a component has a permission that no test used. It runs after all other tests, in its own vitest project, and needs
// a run of all suites: `npm test`.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { grantsOf } from '../../src/apiserver/rbac/component-access.fixture.ts'
import { COMPONENT_RULES, type Component } from '../../src/apiserver/rbac/component-rules.ts'
import { suitesWithRules, usageFile } from './suites.ts'

const DIR = process.env.RULE_USAGE_DIR ?? ''
const readUsage = (file: string): string[] => JSON.parse(readFileSync(join(DIR, file), 'utf8'))

it('SYS-9 every rule of every component is used by a test', ({ skip }) => {
  const hasRun = (path: string) => ['stowage', 'isolated'].some((name) => existsSync(join(DIR, usageFile(name, path))))
  const missingSuites = suitesWithRules().filter((path) => !hasRun(path))
  // In CI all suites run, so none may be missing.
  if (process.env.CI === 'true') expect(missingSuites).toEqual([])
  skip(missingSuites.length > 0, `${missingSuites.length} suites did not run, among them ${missingSuites[0]}`)
  const usedIds = new Set(readdirSync(DIR).flatMap(readUsage))
  const grants = (Object.keys(COMPONENT_RULES) as Component[]).flatMap((component) => grantsOf(component))
  expect(grants.map(({ id }) => id).filter((id) => !usedIds.has(id))).toEqual([])
})
