// Tests that the catalogue is consistent and that docs/reference/verify-checks.md lists it. `npx vitest run src/verify/catalogue
// -u` updates the page.
import { describe, expect, it } from 'vitest'
import { CHECKS, selectChecks } from './catalogue.ts'
import type { Check, Needs } from './check.ts'
import { PLANTED_FAULTS } from './planted-faults.fixture.ts'

const PAGE = '../../docs/reference/verify-checks.md'

describe('catalogue', () => {
  it('PLUS-7 has a unique id, a title, a section and a rule for each check', () => {
    expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length)
    for (const { id, title, rule } of CHECKS) {
      expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/)
      expect(title).not.toBe('')
      expect(rule.section).not.toBe('')
      expect(rule.text).toMatch(/\.$/)
    }
  })

  it('selects checks by id and pattern', () => {
    expect(selectChecks([])).toBe(CHECKS)
    expect(selectChecks(['life']).map(({ id }) => id)).toEqual(['life'])
    expect(selectChecks(['delete-*', 'life']).map(({ id }) => id)).toContain('delete-in-use')
    expect(selectChecks(['delete.*'])).toEqual([])
  })

  it('contains every check that a planted fault refers to', () => {
    const ids = new Set(CHECKS.map(({ id }) => id))
    expect(PLANTED_FAULTS.filter(({ check }) => !ids.has(check))).toEqual([])
  })

  it('PLUS-7 is listed in the reference, with the planted faults', async () => {
    await expect(formatPage()).toMatchFileSnapshot(PAGE)
  })
})

function formatPage(): string {
  const checks = CHECKS.map(
    (check) => `| \`${check.id}\` | ${check.title} | ${formatRule(check)} | ${formatNeeds(check.needs)} |`,
  )
  const faults = PLANTED_FAULTS.map(({ title, check }) => `| ${title} | \`${check}\` |`)
  return `# Checks of stowage verify

\`stowage verify\` runs these ${CHECKS.length} checks; see [Verify a driver](../how-to/verify-a-driver.md). Each tests a rule of the
[CSI specification](https://github.com/container-storage-interface/spec/blob/master/spec.md), whose sections are named in italics. A
check applies to drivers with the capabilities in the last column. Violations of recommended rules are advice, and do not fail the
verification. A test writes this page.

| id | title | rule | needs |
|---|---|---|---|
${checks.join('\n')}

## Planted faults

The tests plant each of these ${PLANTED_FAULTS.length} faults into a driver that otherwise passes every check, and expect the named check to
find it.

| fault | found by |
|---|---|
${faults.join('\n')}
`
}

const formatRule = ({ rule }: Check): string =>
  `*${rule.section}*: ${rule.text}${rule.level === 'should' ? ' (recommended)' : ''}`

function formatNeeds(needs: Needs = {}): string {
  const parts = [
    ...(needs.controller ? [['controller', ...needs.controller].join(' ')] : []),
    ...(needs.node ? [['node', ...needs.node].join(' ')] : []),
    ...(needs.plugin ?? []),
    ...(needs.onlyOfflineExpansion ? ['OFFLINE expansion only'] : []),
    ...(needs.attributes ? ['a VolumeAttributesClass in `--class`'] : []),
    ...(needs.otherNode ? ['`--other-node`'] : []),
    ...(needs.restart ? ['`--driver`'] : []),
  ]
  return parts.join(', ') || '–'
}
