import { describe, expect, it } from 'vitest'
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { countParts, describeRules, uncoveredRules } from './rule-cover.ts'

const rule = (verbs: string, group: string, resources: string, names = ''): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: [group],
  resources: resources.split(' '),
  ...(names ? { resourceNames: names.split(' ') } : {}),
})
const paths = (verbs: string, ...nonResourceURLs: string[]): PolicyRule => ({
  verbs: verbs.split(' '),
  nonResourceURLs,
})

describe('uncoveredRules', () => {
  it.each([
    ['the same rule', rule('get list', '', 'pods'), rule('get', '', 'pods')],
    ['all resources', rule('*', '*', '*'), rule('get', 'apps', 'deployments/scale')],
    ['a subresource of all resources', rule('get', '', '*/scale'), rule('get', '', 'x/scale')],
    ['all names', rule('get', '', 'secrets'), rule('get', '', 'secrets', 'a b')],
    ['more names', rule('get', '', 'secrets', 'a b'), rule('get', '', 'secrets', 'b')],
    ['a path prefix', paths('get', '/a/*'), paths('get', '/a/b')],
  ])('SYS-9 returns nothing for a rule that is covered by %s', (_, ownRule, requestedRule) => {
    expect(uncoveredRules([ownRule], [requestedRule])).toEqual([])
  })

  it.each([
    [
      'a wildcard verb by all verbs',
      rule('get list watch create update patch delete', '', 'pods'),
      rule('*', '', 'pods'),
    ],
    ['a wildcard group by a group', rule('get', '', '*'), rule('get', '*', 'pods')],
    ['a subresource by its resource', rule('get', '', 'pods'), rule('get', '', 'pods/log')],
    ['all objects by named ones', rule('get', '', 'secrets', 'a'), rule('get', '', 'secrets')],
    ['a path above a prefix', paths('get', '/a/*'), paths('get', '/a')],
  ])('SYS-9 returns a rule that is not covered: %s', (_, ownRule, requestedRule) => {
    expect(uncoveredRules([ownRule], [requestedRule])).not.toEqual([])
  })

  it('SYS-9 returns all uncovered parts, or at most `max` of them', () => {
    const names = Array.from({ length: 300 }, (_, index) => `name-${index}`)
    const rules = [rule('get', '', 'nodes', names.join(' '))]
    expect(uncoveredRules([], rules)).toHaveLength(300)
    expect(uncoveredRules([], rules, { max: 7 })).toHaveLength(7)
  })

  it('SYS-9 returns only the parts that none of several held rules covers', () => {
    const ownRules = [rule('get', '', 'pods'), rule('list', '', 'pods secrets')]
    expect(uncoveredRules(ownRules, [rule('get list', '', 'pods')])).toEqual([])

    expect(uncoveredRules(ownRules, [rule('get list', '', 'pods secrets')])).toEqual([rule('get', '', 'secrets')])
  })
})

describe('describeRules', () => {
  it('merges the verbs of a resource and sorts the descriptions', () => {
    const parts = [
      rule('list', '', 'secrets'),
      rule('get', '', 'pods', 'a'),
      rule('get', '', 'secrets'),
      paths('get', '/x'),
    ]
    expect(describeRules(parts)).toEqual([
      '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "get"]}',
      '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ])
  })
})

describe('countParts', () => {
  it('multiplies verbs, groups, resources and names', () => {
    expect(countParts([rule('get list', '', 'a b', 'x y z'), paths('get', '/a', '/b')])).toBe(14)
  })
})
