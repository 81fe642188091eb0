import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClusterRoleBinding, PolicyRule } from '../../api/kinds/rbac/rbac-schema.ts'
import type { ResourceAttributes } from '../security/index.ts'
import { createRbacAuthorizer } from './rbac-authorizer.ts'
import { createRoleIndex } from './role-index.ts'

const USER = { name: 'ann', groups: [] }
/** Few values, and some that equal others when they are joined. */
const part = fc.constantFrom('', 'a', 'b', 'a a', ' a', 'aa', '*')
const rule = fc.record(
  {
    verbs: fc.array(part, { minLength: 1, maxLength: 2 }),
    apiGroups: fc.array(part, { maxLength: 2 }),
    resources: fc.array(
      fc.oneof(
        part,
        fc.tuple(part, part).map((pair) => pair.join('/')),
      ),
      { maxLength: 2 },
    ),
    resourceNames: fc.array(part, { maxLength: 1 }),
  },
  { requiredKeys: ['verbs', 'apiGroups', 'resources'] },
)
const request = fc.record({ verb: part, group: part, resource: part, subresource: part, name: part })

const BINDING: ClusterRoleBinding = {
  metadata: {},
  subjects: [{ kind: 'User', name: USER.name }],
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'role' },
}

function createAuthorizer() {
  const index = createRoleIndex()
  index.setClusterRoleBinding('binding', BINDING)
  const { authorize } = createRbacAuthorizer(index)
  const setRules = (rules: PolicyRule[]) => index.setClusterRole('role', { metadata: {}, rules })
  return { authorize, setRules }
}

describe('the decision cache', () => {
  it('SYS-9 returns the decision that an empty cache would return, even after a role changes', () => {
    const changes = fc.array(fc.record({ rules: fc.array(rule, { maxLength: 3 }), requests: fc.array(request) }), {
      maxLength: 4,
    })
    fc.assert(
      fc.property(changes, (roles) => {
        const authorizer = createAuthorizer()
        for (const { rules, requests } of roles) {
          authorizer.setRules(rules)
          for (const { subresource, name, ...otherAttributes } of requests) {
            const attributes: ResourceAttributes = { user: USER, version: 'v1', ...otherAttributes }
            if (subresource) attributes.subresource = subresource
            if (name) attributes.name = name
            const freshAuthorizer = createAuthorizer()
            freshAuthorizer.setRules(rules)
            expect(authorizer.authorize(attributes)).toEqual(freshAuthorizer.authorize(attributes))
          }
        }
      }),
      { seed: 1, numRuns: 300 },
    )
  })
})
