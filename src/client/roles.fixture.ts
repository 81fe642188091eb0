// Test support: loads the upstream roles from test/roles and checks whether they grant a request.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

interface RoleFile {
  readonly cluster?: Readonly<Record<string, string>>
  readonly namespace?: Readonly<Record<string, string>>
  /** Resources that may be read by name only, neither listed nor watched. */
  readonly byName?: readonly string[]
  /** Resources that may be listed and watched only with a selector of this field. */
  readonly bySelector?: Readonly<Record<string, string>>
}

export interface RoleRequest {
  readonly verb: string
  readonly group: string
  readonly plural: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly fieldSelector?: string
}

export interface Role {
  allows(request: RoleRequest): boolean
}

const ROLES = join(import.meta.dirname, '../../test/roles')

/** Returns the union of roles. `namespace` is the program's namespace. */
export function loadRoles(names: readonly string[], namespace: string): Role {
  const files = names.map((name) => parse(readFileSync(join(ROLES, `${name}.yaml`), 'utf8')) as RoleFile)
  return { allows: (request) => files.some((file) => isGranted(file, request, namespace)) }
}

function isGranted(
  { cluster: clusterRules = {}, namespace: namespaceRules = {}, ...limits }: RoleFile,
  request: RoleRequest,
  namespace: string,
) {
  const resource = resourceOf(request)
  const { verb } = request
  const grants = (rules: Readonly<Record<string, string>>) =>
    [rules[resource], rules['*']].some((verbs) => verbs?.split(' ').includes(verb))
  if (!grants(clusterRules) && !(request.namespace === namespace && grants(namespaceRules))) return false
  if (verb !== 'list' && verb !== 'watch') return true
  if (limits.byName?.includes(resource)) return false
  const field = limits.bySelector?.[resource]
  return field === undefined || request.fieldSelector?.startsWith(`${field}=`) === true
}

/** Returns the verb and resource of a request: `get pods`, `patch nodes/status`, `list leases.coordination.k8s.io`. */
export const nameOfRequest = (request: RoleRequest): string => `${request.verb} ${resourceOf(request)}`

const resourceOf = ({ group, plural, subresource }: RoleRequest): string =>
  `${plural}${group ? `.${group}` : ''}${subresource ? `/${subresource}` : ''}`
