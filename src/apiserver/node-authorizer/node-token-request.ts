// Limits the ServiceAccount tokens that a node requests to those of pods on the node, as NodeRestriction of Kubernetes does.
import type { TokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import type { UserInfo } from '../security/index.ts'
import { nodeNameOf } from './node-identity.ts'

/** Returns why a node must not get the token, or undefined if it may. `podNode` is the node of the bound pod. */
export function nodeTokenProblem(
  user: UserInfo,
  { spec }: Pick<TokenRequest, 'spec'>,
  podNode: string | undefined,
): string | undefined {
  const nodeName = nodeNameOf(user)
  if (nodeName === undefined) return undefined
  const { boundObjectRef: ref } = spec
  if (ref?.apiVersion !== 'v1' || ref.kind !== 'Pod' || !ref.name) return 'node requested token not bound to a pod'
  if (!ref.uid) return 'node requested token with a pod binding without a uid'
  return podNode === nodeName ? undefined : 'node requested token bound to a pod scheduled on a different node'
}
