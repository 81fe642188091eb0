// Checks that a component's user has the permissions of component-rules.ts, with one access review per verb and resource. Rules for
// paths are not checked.
import type { Kind } from '../../../../api/kind.ts'
import { ALL_KINDS } from '../../../../api/kinds/index.ts'
import { selfSubjectReviewKind } from '../../../../api/kinds/reviews/reviews.ts'
import { ApiError } from '../../../../api/status-error.ts'
import type { ComponentRule } from '../../../../apiserver/rbac/component-rules.ts'
import { quoteShellWord } from '../../../../base/shell-word.ts'
import {
  volumeSnapshotContentKind,
  volumeSnapshotKind,
} from '../../../../controllers/provisioning/csi/snapshot-kinds.ts'
import { CONCURRENT_REQUESTS_MAX, mapConcurrently } from '../../../bulk/index.ts'
import { selectRules } from '../../rbac/select-rules.ts'
import { type AccessReviewer, createAccessReviewer, parseAccount } from '../access-review.ts'
import type { Check, DoctorContext, Finding, Subject } from '../check.ts'

/** A permission that a rule grants: one verb on one resource. */
interface Right {
  readonly verb: string
  readonly resource: string
  /** Absent for the whole cluster. */
  readonly namespace?: string
  readonly name?: string
  /** Absent for a permission that the component always needs. */
  readonly feature?: string
}

/** Also the default of `stowage rbac print`. */
const NAMESPACE_DEFAULT = 'kube-system'

export const rights: Check = {
  id: 'rights',
  title: 'Rights',
  async run(context) {
    const { subject } = context
    if (!subject) {
      return [
        {
          status: 'unknown',
          message: 'Not checked: no component is selected.',
          remedy: 'stowage doctor --component sidecar --as system:serviceaccount:NAMESPACE:NAME',
        },
      ]
    }
    const user = subject.user ?? (await readUserName(context))
    const namespace = subject.namespace ?? parseAccount(user)?.namespace ?? NAMESPACE_DEFAULT
    const rightsInUse = await findRightsInUse(context, subject, namespace)
    const reviewer = createAccessReviewer(context.client, subject.user)
    const grants = await mapConcurrently(rightsInUse, CONCURRENT_REQUESTS_MAX, (right) => hasRight(reviewer, right))
    const missingRights = rightsInUse.filter((_, index) => !grants[index])
    if (missingRights.length > 0) return describeMissingRights(missingRights, user, { ...subject, namespace })
    return [
      { status: 'ok', message: `${user} has all ${rightsInUse.length} rights of the component ${subject.component}.` },
    ]
  },
}

/** Returns each permission once. Omits those for resources that are not served, and those for transactions if there are none. */
async function findRightsInUse(context: DoctorContext, subject: Subject, componentNamespace: string): Promise<Right[]> {
  const rightsByKey = new Map<string, Right>()
  const hasTransactions = await context.client.commitsAtomically()
  for (const rule of selectRules(subject.component, subject.features)) {
    if (rule.feature === 'transactions' && !hasTransactions) continue
    for (const resource of rule.resources) {
      if (!(await isServed(resource, context))) continue
      for (const right of selectRights(rule, resource, componentNamespace)) {
        const { verb, namespace = '', name = '', feature } = right
        const key = JSON.stringify([verb, resource, namespace, name])
        // A permission that the component always needs stays required, even if a feature needs it too.
        if (!rightsByKey.has(key) || feature === undefined) rightsByKey.set(key, right)
      }
    }
  }
  return [...rightsByKey.values()]
}

function selectRights(
  { verbs, names, namespace, feature }: ComponentRule,
  resource: string,
  ownNamespace: string,
): Right[] {
  const scope = {
    ...(namespace ? { namespace: namespace === 'own' ? ownNamespace : namespace } : {}),
    ...(feature ? { feature } : {}),
  }
  return verbs.flatMap((verb) =>
    names ? names.map((name) => ({ verb, resource, name, ...scope })) : [{ verb, resource, ...scope }],
  )
}

const KINDS: readonly Kind[] = [...ALL_KINDS, volumeSnapshotKind as Kind, volumeSnapshotContentKind as Kind]

/** Returns whether the server serves a resource. Resources without a declared kind are assumed to be served. */
async function isServed(resource: string, { cluster }: DoctorContext): Promise<boolean> {
  const [id] = resource.split('/')
  const kind = KINDS.find(({ plural, group }) => id === (group ? `${plural}.${group}` : plural))
  return kind ? cluster.serves(kind) : true
}

/**
 * Returns whether the user has the permission. `get` and `update` together replace `patch`, as in client/patch-by-update.ts.
 */
async function hasRight(reviewer: AccessReviewer, right: Right): Promise<boolean> {
  if (await reviewer.allows(right)) return true
  if (right.verb !== 'patch') return false
  const readRight = { ...right, verb: 'get', resource: right.resource.split('/')[0]! }
  return (await reviewer.allows({ ...right, verb: 'update' })) && (await reviewer.allows(readRight))
}

/** Returns the name of the kubeconfig's user. Servers before Kubernetes 1.28 do not report it. */
async function readUserName({ client }: DoctorContext): Promise<string> {
  try {
    const { status } = await client.create(selfSubjectReviewKind, { metadata: {} })
    return status?.userInfo?.username ?? 'The current user'
  } catch (error) {
    if (error instanceof ApiError) return 'The current user'
    throw error
  }
}

type SubjectInNamespace = Subject & { readonly namespace: string }

function describeMissingRights(missingRights: readonly Right[], user: string, subject: SubjectInNamespace): Finding[] {
  const groups = new Map<string, Right[]>()
  for (const right of missingRights) {
    const key = JSON.stringify([right.resource, right.namespace, right.name, right.feature])
    groups.set(key, [...(groups.get(key) ?? []), right])
  }
  const remedy = describeRemedy(user, subject)
  const findings = [...groups.values()].map((group): Finding => {
    const [{ resource, namespace, name, feature }] = group as [Right]
    const verbs = group.map(({ verb }) => verb).join(', ')
    const scope = `${name ? ` ${name}` : ''}${namespace ? ` in the namespace ${namespace}` : ''}`
    const denial = `${user} cannot ${verbs} ${resource}${scope}`
    return feature
      ? { status: 'warning', message: `${denial}: the feature ${feature} is out of service.`, remedy }
      : { status: 'error', message: `${denial}, which the component ${subject.component} always needs.`, remedy }
  })
  return findings.sort((a, b) => Number(a.status === 'warning') - Number(b.status === 'warning'))
}

function describeRemedy(user: string, { component, features, namespace }: SubjectInNamespace): string {
  const account = parseAccount(user)
  const flags = [
    ...['--component', component],
    ...(features ? ['--features', features.join(',')] : []),
    ...['--namespace', namespace],
    ...(account?.namespace === namespace ? ['--service-account', account.name] : []),
  ]
  return `stowage rbac print ${flags.map(quoteShellWord).join(' ')} | kubectl apply -f -`
}
