// Declares Role: rules within one namespace.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { pathSegmentProblems } from '../../names.ts'
import { RBAC_GROUP, type Role, role } from './rbac-schema.ts'
import { validatePolicyRules } from './role-rules.ts'

export const roleKind = defineKind<Role>({
  group: RBAC_GROUP,
  versions: ['v1'],
  kind: 'Role',
  plural: 'roles',
  singular: 'role',
  namespaced: true,
  type: role,

  nameErrors: pathSegmentProblems,
  validate: ({ rules }, errors) => validatePolicyRules(rules, errors, { isNamespaced: true }),

  columns: [nameColumn, createdAtColumn],
  deleteReturnsObject: false,
})
