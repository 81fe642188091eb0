// Asks the API server whether a user has a permission: with a SelfSubjectAccessReview for the kubeconfig's user, otherwise
// with a SubjectAccessReview, which the kubeconfig's user must be allowed to create.
import { selfSubjectAccessReviewKind, subjectAccessReviewKind } from '../../../api/kinds/reviews/reviews.ts'
import { parseResource } from '../../../apiserver/rbac/component-roles.ts'
import type { Client } from '../../../client/index.ts'

interface AccessRequest {
  readonly verb: string
  /** As in `kubectl auth can-i`: `pods/status`, `leases.coordination.k8s.io`, or `*` for all. */
  readonly resource: string
  /** Absent for the whole cluster. */
  readonly namespace?: string
  readonly name?: string
}

export interface AccessReviewer {
  /** Rejects with an ApiError if the review fails. */
  allows(request: AccessRequest): Promise<boolean>
}

export function createAccessReviewer(client: Pick<Client, 'create'>, user?: string): AccessReviewer {
  return {
    async allows({ verb, resource: id, namespace = '', name = '' }) {
      const { group, resource: path } = parseResource(id)
      const [resource, subresource = ''] = path.split('/')
      const resourceAttributes = { verb, group, resource, subresource, namespace, name }
      const review =
        user === undefined
          ? await client.create(selfSubjectAccessReviewKind, { metadata: {}, spec: { resourceAttributes } })
          : await client.create(subjectAccessReviewKind, {
              metadata: {},
              spec: { resourceAttributes, user, groups: listGroups(user) },
            })
      return review.status?.allowed === true
    },
  }
}

/** Returns the group of all users and, for a service account, those of service accounts. */
function listGroups(user: string): string[] {
  const account = parseAccount(user)
  const groups = ['system:authenticated']
  return account ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`, ...groups] : groups
}

/** Returns the service account with this user name, or undefined for other users. */
export function parseAccount(user: string): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? []
  return namespace === undefined || name === undefined ? undefined : { namespace, name }
}
