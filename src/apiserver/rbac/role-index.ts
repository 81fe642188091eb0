// An index of roles and bindings by subject, from which the authorizer decides without reading the store. followRoles
// keeps it up to date.
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  RoleRef,
  Subject,
} from '../../api/kinds/rbac/rbac-schema.ts'
import { accountUserName, type UserInfo } from '../security/index.ts'

/** The rules that a binding grants to a subject. */
export interface Grant {
  /** The binding, the role and the subject, such as `ClusterRoleBinding "b" of ClusterRole "r" to Group "g"`. */
  readonly description: string
  readonly roleRef: RoleRef
  /** Undefined if the role does not exist. */
  readonly rules: readonly PolicyRule[] | undefined
}

export interface RoleIndex {
  setClusterRole(name: string, role: Readonly<ClusterRole> | undefined): void
  setRole(namespace: string, name: string, role: Readonly<Role> | undefined): void
  setClusterRoleBinding(name: string, binding: Readonly<ClusterRoleBinding> | undefined): void
  setRoleBinding(namespace: string, name: string, binding: Readonly<RoleBinding> | undefined): void
  /** Returns the grants of a user: those of the whole cluster, then those of the namespace, unless it is empty. */
  grantsOf(user: UserInfo, namespace: string): readonly Grant[]
  /** Returns the rules of a role, or undefined if it does not exist. */
  rulesOf(roleRef: Pick<RoleRef, 'kind' | 'name'>, namespace: string): readonly PolicyRule[] | undefined
  /** Returns all cluster roles in the order of their names. */
  clusterRoles(): Readonly<ClusterRole>[]
}

/** A binding as seen from one of its subjects. */
interface SubjectBinding {
  readonly key: string
  readonly namespace: string
  readonly roleRef: RoleRef
  readonly description: string
}

/** Grants in further namespaces are computed again for each request. */
const NAMESPACES_PER_USER_MAX = 100

export function createRoleIndex(): RoleIndex {
  const clusterRoles = new Map<string, Readonly<ClusterRole>>()
  const roles = new Map<string, Readonly<Role>>()
  /** Bindings by namespace, which is empty for those of the whole cluster, and by subject. */
  const byNamespace = new Map<string, Map<string, SubjectBinding[]>>()
  /** The subjects of each binding, to remove it from byNamespace. */
  const subjectsOfBinding = new Map<string, readonly string[]>()
  /** The grants of users who sent requests since the last change, by namespace. */
  let grantsByUser = new WeakMap<UserInfo, Map<string, readonly Grant[]>>()
  const forgetGrants = () => {
    grantsByUser = new WeakMap()
  }

  function setBinding(
    namespace: string,
    name: string,
    binding: Readonly<RoleBinding | ClusterRoleBinding> | undefined,
  ): void {
    forgetGrants()
    const key = `${namespace}/${name}`
    const bySubject = byNamespace.get(namespace) ?? new Map<string, SubjectBinding[]>()
    for (const subject of subjectsOfBinding.get(key) ?? []) {
      const otherBindings = (bySubject.get(subject) ?? []).filter((other) => other.key !== key)
      if (otherBindings.length > 0) bySubject.set(subject, otherBindings)
      else bySubject.delete(subject)
    }
    subjectsOfBinding.delete(key)
    if (binding) {
      const { roleRef, subjects = [] } = binding
      const subjectKeys = new Set<string>()
      for (const subject of subjects) {
        const subjectKey = keyOfSubject(subject, namespace)
        if (subjectKey === undefined || subjectKeys.has(subjectKey)) continue
        subjectKeys.add(subjectKey)
        const description = describeGrant(namespace, name, roleRef, subject)
        const bindings = bySubject.get(subjectKey) ?? []
        bindings.push({ key, namespace, roleRef, description })
        bySubject.set(subjectKey, bindings)
      }
      subjectsOfBinding.set(key, [...subjectKeys])
    }
    if (bySubject.size > 0) byNamespace.set(namespace, bySubject)
    else byNamespace.delete(namespace)
  }

  const rulesOf: RoleIndex['rulesOf'] = ({ kind, name }, namespace) =>
    (kind === 'ClusterRole' ? clusterRoles.get(name) : roles.get(`${namespace}/${name}`))?.rules

  function* grantsIn(namespace: string, { name, groups }: UserInfo): Generator<Grant> {
    const bySubject = byNamespace.get(namespace)
    if (!bySubject) return
    for (const subject of [`User ${name}`, ...groups.map((group) => `Group ${group}`)]) {
      for (const { roleRef, description } of bySubject.get(subject) ?? []) {
        yield { description, roleRef, rules: rulesOf(roleRef, namespace) }
      }
    }
  }

  return {
    setClusterRole(name, role) {
      forgetGrants()
      if (role) clusterRoles.set(name, role)
      else clusterRoles.delete(name)
    },
    setRole(namespace, name, role) {
      forgetGrants()
      if (role) roles.set(`${namespace}/${name}`, role)
      else roles.delete(`${namespace}/${name}`)
    },
    setClusterRoleBinding: (name, binding) => setBinding('', name, binding),
    setRoleBinding: setBinding,
    grantsOf(user, namespace) {
      const grantsByNamespace = grantsByUser.get(user) ?? new Map<string, readonly Grant[]>()
      grantsByUser.set(user, grantsByNamespace)
      let grants = grantsByNamespace.get(namespace)
      if (!grants) {
        grants = [...grantsIn('', user), ...(namespace ? grantsIn(namespace, user) : [])]
        if (grantsByNamespace.size < NAMESPACES_PER_USER_MAX) grantsByNamespace.set(namespace, grants)
      }
      return grants
    },
    rulesOf,
    clusterRoles: () => [...clusterRoles].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, role]) => role),
  }
}

/** A service account is the user `system:serviceaccount:NAMESPACE:NAME`. A subject of an unknown kind has no grants. */
function keyOfSubject({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  if (kind === 'User' || kind === 'Group') return `${kind} ${name}`
  if (kind !== 'ServiceAccount') return undefined
  const accountNamespace = namespace || bindingNamespace
  return accountNamespace ? `User ${accountUserName(accountNamespace, name)}` : undefined
}

function describeGrant(namespace: string, name: string, roleRef: RoleRef, subject: Subject): string {
  const binding = namespace ? `RoleBinding "${name}/${namespace}"` : `ClusterRoleBinding "${name}"`
  const subjectName =
    subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace || namespace}` : subject.name
  return `${binding} of ${roleRef.kind} "${roleRef.name}" to ${subject.kind} "${subjectName}"`
}
