// Declares ServiceAccount: an identity for programs. The `token` subresource of the API server issues its tokens.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { type ServiceAccount, serviceAccount } from './service-account-schema.ts'

export const serviceAccountKind = defineKind<ServiceAccount>({
  group: '',
  versions: ['v1'],
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  namespaced: true,
  type: serviceAccount,

  nameErrors: dns1123SubdomainProblems,
  prepareForCreate: keepSecretNamesOnly,
  prepareForUpdate: keepSecretNamesOnly,
  validate() {},

  columns: [nameColumn, ageColumn],
  deleteReturnsObject: true,
})

/** Drops all fields of secret references except the name, because the secrets are in the same namespace. */
function keepSecretNamesOnly(object: ServiceAccount): void {
  if (object.secrets) object.secrets = object.secrets.map(({ name }) => (name === undefined ? {} : { name }))
}
