// Prints the roles of a component for `kubectl apply`, with a service account and bindings if requested.
import { stringify } from 'yaml'
import { roleRulesOf } from '../../../apiserver/rbac/component-roles.ts'
import type { OutputFormat } from '../../output/format-output.ts'
import { type PrintedComponent, selectRules } from './select-rules.ts'

export interface PrintRolesOptions {
  readonly component: PrintedComponent
  /** Default: all features, except controllers that run only if they are named. */
  readonly features?: readonly string[]
  /** The namespace in which the component runs. */
  readonly namespace: string
  /** Name of the roles and bindings. Default: `stowage-COMPONENT`. */
  readonly name?: string
  /** The service account to create and to bind the roles to. Default: none, and no bindings. */
  readonly serviceAccount?: string
}

const RBAC_GROUP = 'rbac.authorization.k8s.io'
const RBAC_VERSION = `${RBAC_GROUP}/v1`

/** Returns the roles, and the service account and bindings if requested, as YAML documents, or with the format `json` as a List. */
export function printRoles(options: PrintRolesOptions, format: OutputFormat = 'yaml'): string {
  const items = createRoles(options)
  if (format === 'json') return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items })}\n`
  return items.map((item) => stringify(item, { aliasDuplicateObjects: false })).join('---\n')
}

function createRoles(options: PrintRolesOptions): readonly object[] {
  const { component, features, namespace, name = `stowage-${component}`, serviceAccount } = options
  const roles = roleRulesOf(selectRules(component, features), namespace)
  const documents: object[] = []
  if (serviceAccount)
    documents.push({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: serviceAccount, namespace } })
  for (const { namespace: roleNamespace, rules } of roles) {
    const metadata = { name, ...(roleNamespace ? { namespace: roleNamespace } : {}) }
    const kind = roleNamespace ? 'Role' : 'ClusterRole'
    documents.push({ apiVersion: RBAC_VERSION, kind, metadata, rules })
    if (!serviceAccount) continue
    documents.push({
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind, name },
      subjects: [{ kind: 'ServiceAccount', name: serviceAccount, namespace }],
    })
  }
  return documents
}
