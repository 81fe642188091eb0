import { describe, expect, it } from 'vitest'
import { tryCreate, tryUpdate } from '../kind.fixture.ts'
import { clusterRoleKind } from './cluster-role.ts'
import { clusterRoleBindingKind } from './cluster-role-binding.ts'
import { roleKind } from './role.ts'
import { roleBindingKind } from './role-binding.ts'

const GROUP = 'rbac.authorization.k8s.io'
const RULE = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }
const metadata = { name: 'system:x' }

describe('Role and ClusterRole', () => {
  const roleErrors = (rule: object) => tryCreate(roleKind, { metadata, rules: [rule] }).errors
  const clusterRoleErrors = (rule: object) => tryCreate(clusterRoleKind, { metadata, rules: [rule] }).errors

  it('accept resource rules, and paths in cluster roles only', () => {
    const pathRule = { verbs: ['get'], nonResourceURLs: ['/metrics'] }
    expect(roleErrors(RULE)).toEqual([])
    expect(clusterRoleErrors(RULE)).toEqual([])
    expect(clusterRoleErrors(pathRule)).toEqual([])
    expect(roleErrors(pathRule)).toEqual([
      'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs',
    ])
  })

  it('reject incomplete and mixed rules', () => {
    expect(clusterRoleErrors({ ...RULE, verbs: [] })).toEqual([
      'rules[0].verbs: Required value: verbs must contain at least one value',
    ])
    expect(clusterRoleErrors({ verbs: ['get'] })).toEqual([
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
    ])
    expect(clusterRoleErrors({ ...RULE, nonResourceURLs: ['/x'] })).toEqual([
      'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
    ])
  })

  it('require selectors in an aggregation rule', () => {
    const aggregationErrors = (aggregationRule: object) =>
      tryCreate(clusterRoleKind, { metadata, rules: [], aggregationRule }).errors
    expect(aggregationErrors({ clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] })).toEqual([])
    expect(aggregationErrors({})).toEqual([
      'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
    ])
    expect(
      aggregationErrors({ clusterRoleSelectors: [{ matchExpressions: [{ key: 'a', operator: 'Nope' }] }] }),
    ).toHaveLength(1)
  })
})

describe('RoleBinding and ClusterRoleBinding', () => {
  const roleRef = { apiGroup: GROUP, kind: 'ClusterRole', name: 'view' }
  const bindingOfSubject = (fields: object) => ({ metadata, roleRef, subjects: [{ name: 'x', ...fields }] })

  it('default the API groups of the role and of users, but not of service accounts', () => {
    const { object, errors } = tryCreate(clusterRoleBindingKind, {
      metadata,
      roleRef: { kind: 'ClusterRole', name: 'view' },
      subjects: [
        { kind: 'User', name: 'ann' },
        { kind: 'ServiceAccount', name: 'robot', namespace: 'default' },
      ],
    })
    expect(errors).toEqual([])
    expect(object.roleRef.apiGroup).toBe(GROUP)
    expect(object.subjects?.map(({ apiGroup }) => apiGroup)).toEqual([GROUP, undefined])
  })

  it('accept a role only in a role binding', () => {
    const binding = { metadata, roleRef: { ...roleRef, kind: 'Role' } }
    expect(tryCreate(roleBindingKind, binding).errors).toEqual([])
    expect(tryCreate(clusterRoleBindingKind, binding).errors).toEqual([
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    ])
  })

  it('reject invalid subjects', () => {
    expect(tryCreate(roleBindingKind, bindingOfSubject({ kind: 'ServiceAccount' })).errors).toEqual([])
    expect(tryCreate(clusterRoleBindingKind, bindingOfSubject({ kind: 'ServiceAccount' })).errors).toEqual([
      'subjects[0].namespace: Required value',
    ])
    expect(tryCreate(roleBindingKind, bindingOfSubject({ kind: 'Robot' })).errors).toEqual([
      'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ])
    expect(tryCreate(roleBindingKind, bindingOfSubject({ kind: 'User', apiGroup: 'apps' })).errors).toEqual([
      `subjects[0].apiGroup: Unsupported value: "apps": supported values: "${GROUP}"`,
    ])
    expect(tryCreate(roleBindingKind, bindingOfSubject({ kind: 'User', name: '' })).errors).toEqual([
      'subjects[0].name: Required value',
    ])
  })

  it('reject a change to the role', () => {
    const { object } = tryCreate(roleBindingKind, { metadata, roleRef })
    const { errors } = tryUpdate(roleBindingKind, object, { metadata, roleRef: { ...roleRef, name: 'edit' } })
    expect(errors).toEqual([
      `roleRef: Invalid value: {"apiGroup":"${GROUP}","kind":"ClusterRole","name":"edit"}: field is immutable`,
    ])
  })
})
