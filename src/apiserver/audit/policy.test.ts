import { describe, expect, it } from 'vitest'
import { parseRoute } from '../http/route.ts'
import { defaultAuditPolicy } from './default-policy.ts'
import { createRuleFinder } from './match-rule.ts'
import { parseAuditPolicy } from './policy.ts'

const HEAD = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n'

/** Returns the level of a request such as `GET /api/v1/pods` under the rules, or None. */
async function readLevel(
  policy: string | Awaited<ReturnType<typeof defaultAuditPolicy>>,
  request: string,
  user = { name: 'ann', groups: ['dev', 'system:authenticated'] },
) {
  const [method = '', url = ''] = request.split(' ')
  const [path = '', query] = url.split('?')
  const rules = typeof policy === 'string' ? await parseAuditPolicy(`${HEAD}${policy}`) : policy
  const route = parseRoute(method, path, new URLSearchParams(query))
  return createRuleFinder(rules)({ user, route })?.level ?? 'None'
}

const PODS = '/api/v1/namespaces/shop/pods'

describe('an audit policy', () => {
  it.each([
    ['rules: [{level: None, user: [ann]}]', 'unknown field "rules[0].user"'],
    ['rules: [{level: Verbose}]', 'rules[0].level: Unsupported value: "Verbose"'],
    ['rules: [{users: [ann]}]', 'rules[0].level: Required value'],
    ['rules: []', 'rules: at least one rule is required'],
    ['rules: [{level: None, omitStages: [Done]}]', 'rules[0].omitStages[0]: Invalid value: "Done": allowed stages are'],
    ['rules: [{level: None, nonResourceURLs: [healthz]}]', "must begin with a '/' character"],
    ['rules: [{level: None, nonResourceURLs: [/a*b]}]', "wildcards '*' must be the final character"],
    ['rules: [{level: None, nonResourceURLs: [/a], namespaces: [x]}]', 'both regular resources and non-resource URLs'],
    ['rules: [{level: None, resources: [{group: "", resourceNames: [a]}]}]', 'requires at least one resource'],
    ['rules: [{level: None, users: ann}]', 'rules[0].users'],
    ['rules: [{level: None, level: Metadata}]', 'duplicate field "rules[0].level"'],
  ])('SYS-21 with %s is rejected with an error that names the problem', async (rules, message) => {
    await expect(parseAuditPolicy(`${HEAD}${rules}`)).rejects.toThrow(message)
  })

  it('SYS-21 applies the same rule to a request whether or not rules of its user are cached', async () => {
    const rules = await parseAuditPolicy(
      `${HEAD}rules: [{level: None, namespaces: [ab]}, {level: Request, resources: [{group: "", resources: [ab, b/c]}]}, {level: Metadata}]`,
    )
    const findRule = createRuleFinder(rules)
    const user = { name: 'ann', groups: [] }
    const parts = ['a', 'b', 'ab', 'bc', 'a b']
    const paths = parts.flatMap((namespace) =>
      parts.flatMap((plural) =>
        ['', '/x/c', '/x/bc'].map((suffix) => `/api/v1/namespaces/${namespace}/${plural}${suffix}`),
      ),
    )
    for (const path of [...paths, ...paths]) {
      const route = parseRoute('GET', path, new URLSearchParams())
      expect(findRule({ user, route }), path).toBe(createRuleFinder(rules)({ user, route }))
    }
    const names = await parseAuditPolicy(
      `${HEAD}rules: [{level: Request, resources: [{group: "", resources: [pods], resourceNames: [a]}]}, {level: Metadata}]`,
    )
    const findRuleByName = createRuleFinder(names)
    const levels = ['b', 'a'].map(
      (name) => findRuleByName({ user, route: parseRoute('GET', `${PODS}/${name}`, new URLSearchParams()) })?.level,
    )
    expect(levels).toEqual(['Metadata', 'Request'])
  })

  it('SYS-21 of another version or kind is rejected with an error that names the expected one', async () => {
    await expect(parseAuditPolicy('apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []')).rejects.toThrow(
      'apiVersion must be audit.k8s.io/v1, not "audit.k8s.io/v1beta1"',
    )
    await expect(parseAuditPolicy('apiVersion: audit.k8s.io/v1\nkind: Event')).rejects.toThrow('kind must be Policy')
  })

  it('SYS-21 applies the first matching rule, and None without one', async () => {
    const rules = 'rules: [{level: None, verbs: [get]}, {level: Request, verbs: [get, create]}]'
    expect(await readLevel(rules, `GET ${PODS}/a`)).toBe('None')
    expect(await readLevel(rules, `POST ${PODS}`)).toBe('Request')
    expect(await readLevel(rules, `DELETE ${PODS}/a`)).toBe('None')
  })

  it.each([
    ['pods', 'GET', `${PODS}/a`, true],
    ['pods', 'GET', `${PODS}/a/log`, false],
    ['pods/log', 'GET', `${PODS}/a/log`, true],
    ['pods/*', 'GET', `${PODS}/a/log`, true],
    ['pods/*', 'GET', `${PODS}/a`, true],
    ['*/status', 'PATCH', `${PODS}/a/status`, true],
    ['*/status', 'PATCH', `${PODS}/a`, false],
    ['*', 'PATCH', `${PODS}/a/status`, true],
  ])('SYS-21 resource %s matches %s %s: %s', async (resource, method, path, expected) => {
    const rules = `rules: [{level: Metadata, resources: [{group: "", resources: ["${resource}"]}]}]`
    expect(await readLevel(rules, `${method} ${path}`)).toBe(expected ? 'Metadata' : 'None')
  })

  it('SYS-21 matches users, groups, namespaces and paths', async () => {
    expect(await readLevel('rules: [{level: Metadata, users: [bob]}]', `GET ${PODS}`)).toBe('None')
    expect(await readLevel('rules: [{level: Metadata, userGroups: [dev]}]', `GET ${PODS}`)).toBe('Metadata')
    expect(await readLevel('rules: [{level: Metadata, namespaces: [shop]}]', `GET ${PODS}`)).toBe('Metadata')
    expect(await readLevel('rules: [{level: Metadata, namespaces: [""]}]', 'GET /api/v1/nodes')).toBe('Metadata')
    expect(await readLevel('rules: [{level: Metadata, namespaces: [shop]}]', 'GET /healthz')).toBe('None')
    expect(await readLevel('rules: [{level: Metadata, nonResourceURLs: [/health*]}]', 'GET /healthz')).toBe('Metadata')
    expect(await readLevel('rules: [{level: Metadata, nonResourceURLs: [/health*]}]', `GET ${PODS}`)).toBe('None')
  })

  it('SYS-21 adds the omitStages of a rule to its own, and lets a rule override omitManagedFields', async () => {
    const rules =
      'omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- {level: Request, omitStages: [Panic], omitManagedFields: false}\n- {level: Request}\n'
    expect(await parseAuditPolicy(`${HEAD}${rules}`)).toMatchObject([
      { omitStages: ['RequestReceived', 'Panic'], omitManagedFields: false },
      { omitStages: ['RequestReceived'], omitManagedFields: true },
    ])
  })
})

describe('the default audit policy', () => {
  it.each([
    ['POST /api/v1/namespaces/shop/persistentvolumeclaims', 'Metadata'],
    ['DELETE /api/v1/namespaces/shop/pods', 'Metadata'],
    ['GET /api/v1/namespaces/shop/persistentvolumeclaims', 'None'],
    ['GET /api/v1/secrets?watch=1', 'Metadata'],
    ['GET /api/v1/namespaces/shop/secrets/a', 'Metadata'],
    ['POST /api/v1/namespaces/shop/serviceaccounts/a/token', 'Metadata'],
    ['POST /api/v1/namespaces/shop/events', 'None'],
    ['PATCH /apis/events.k8s.io/v1/namespaces/shop/events/a', 'None'],
    ['PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a', 'None'],
    ['DELETE /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a', 'Metadata'],
    ['POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'None'],
    ['GET /readyz', 'None'],
  ])('SYS-21 records %s at level %s', async (request, level) => {
    expect(await readLevel(await defaultAuditPolicy(), request)).toBe(level)
  })

  it('SYS-21 omits the status that nodes write, but not that of other users', async () => {
    const policy = await defaultAuditPolicy()
    const node = { name: 'system:node:a', groups: ['system:nodes'] }
    expect(await readLevel(policy, 'PATCH /api/v1/nodes/a/status', node)).toBe('None')
    expect(await readLevel(policy, 'PATCH /api/v1/nodes/a/status')).toBe('Metadata')
  })
})
