import { describe, expect, it } from 'vitest'
import type { PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import { ruleAllows } from './rule-match.ts'

const USER = { name: 'ann', groups: [] }
const request = (
  verb: string,
  resource: string,
  fields: { group?: string; subresource?: string; name?: string } = {},
) => ({
  user: USER,
  verb,
  group: '',
  version: 'v1',
  resource,
  ...fields,
})
const rule = (fields: Partial<PolicyRule>): PolicyRule => ({
  verbs: ['get'],
  apiGroups: [''],
  resources: ['pods'],
  ...fields,
})

describe('ruleAllows', () => {
  it('SYS-9 requires verb, group and resource to match', () => {
    expect(ruleAllows(rule({}), request('get', 'pods'))).toBe(true)
    expect(ruleAllows(rule({}), request('list', 'pods'))).toBe(false)
    expect(ruleAllows(rule({}), request('get', 'secrets'))).toBe(false)
    expect(ruleAllows(rule({}), request('get', 'pods', { group: 'apps' }))).toBe(false)
    expect(ruleAllows(rule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }), request('bind', 'roles'))).toBe(true)
  })

  it('SYS-9 treats a subresource as a separate resource', () => {
    const log = request('get', 'pods', { subresource: 'log' })
    expect(ruleAllows(rule({}), log)).toBe(false)
    expect(ruleAllows(rule({ resources: ['pods/*'] }), log)).toBe(false)
    expect(ruleAllows(rule({ resources: ['pods/log'] }), log)).toBe(true)
    expect(ruleAllows(rule({ resources: ['*/log'] }), log)).toBe(true)
    expect(ruleAllows(rule({ resources: ['*'] }), log)).toBe(true)
  })

  it('SYS-9 allows only the named objects, and no request without a name', () => {
    const namedRule = rule({ verbs: ['*'], resourceNames: ['a'] })
    expect(ruleAllows(namedRule, request('get', 'pods', { name: 'a' }))).toBe(true)
    expect(ruleAllows(namedRule, request('get', 'pods', { name: 'b' }))).toBe(false)
    expect(ruleAllows(namedRule, request('list', 'pods'))).toBe(false)
    expect(ruleAllows(namedRule, request('deletecollection', 'pods'))).toBe(false)
  })

  it('SYS-9 matches paths exactly or by prefix', () => {
    const allows = (pattern: string, path: string) =>
      ruleAllows({ verbs: ['get'], nonResourceURLs: [pattern] }, { user: USER, verb: 'get', path })
    expect(allows('/healthz', '/healthz')).toBe(true)
    expect(allows('/healthz', '/healthz/')).toBe(false)
    expect(allows('/healthz*', '/healthzfoo')).toBe(true)
    expect(allows('/healthz/*', '/healthz')).toBe(false)
    expect(allows('*', '/metrics')).toBe(true)
    expect(ruleAllows(rule({ verbs: ['*'], resources: ['*'] }), { user: USER, verb: 'get', path: '/metrics' })).toBe(
      false,
    )
  })
})
