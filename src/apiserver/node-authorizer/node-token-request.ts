// Limits the ServiceAccount tokens that a node may request, as NodeRestriction of Kubernetes does: the token must be bound to
// a pod on the node, and its audience must be named by a projected volume of the pod, by the CSIDriver of one of its volumes,
// or by a role of the node. A fenced node receives no token.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { isFenced } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { TokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { Authorizer, UserInfo } from '../security/index.ts'
import { nodeNameOf } from './node-identity.ts'
import { fencedMessage } from './node-restriction.ts'

export interface NodeTokenRequest {
  readonly user: UserInfo
  /** The token's account. */
  readonly namespace: string
  readonly accountName: string
  readonly spec: TokenRequest['spec']
}

export interface NodeTokenDeps {
  find<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>
  readonly authorizer: Authorizer
}

/** The verb of a role that lets nodes request tokens for an audience. The role names the audience as the resource. */
const AUDIENCE_VERB = 'request-serviceaccounts-token-audience'

/** Returns why a node must not receive the token, or undefined if it may, or if the user is not a node. */
export async function nodeTokenProblem(
  { user, namespace, accountName, spec }: NodeTokenRequest,
  { find, authorizer }: NodeTokenDeps,
): Promise<string | undefined> {
  const nodeName = nodeNameOf(user)
  if (nodeName === undefined) return undefined
  if (isFenced(await find(nodeKind, '', nodeName))) return fencedMessage(nodeName)
  const { boundObjectRef, audiences = [] } = spec
  if (boundObjectRef?.apiVersion !== 'v1' || boundObjectRef.kind !== 'Pod' || !boundObjectRef.name)
    return 'node requested token not bound to a pod'
  if (!boundObjectRef.uid) return 'node requested token with a pod binding without a uid'
  const pod = await find(podKind, namespace, boundObjectRef.name)
  if (pod?.spec?.nodeName !== nodeName) return 'node requested token bound to a pod scheduled on a different node'
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences'
  const [audience = ''] = audiences
  if (await usesAudience(pod, audience, find)) return undefined
  const attributes = { user, verb: AUDIENCE_VERB, group: '', version: 'v1', resource: audience, namespace }
  if (authorizer.authorize({ ...attributes, name: accountName }).allowed) return undefined
  return `audience ${JSON.stringify(audience)} not found in pod spec volume, ${user.name} is not authorized to request tokens for this audience`
}

/**
 * Returns whether a projected volume of the pod, or the CSIDriver of one of its volumes, names the audience. An empty audience
 * is that of the API server.
 */
async function usesAudience(pod: Pod, audience: string, find: NodeTokenDeps['find']): Promise<boolean> {
  for (const volume of pod.spec?.volumes ?? []) {
    const tokens = (volume.projected?.sources ?? []).flatMap(({ serviceAccountToken }) => serviceAccountToken ?? [])
    if (tokens.some((token) => (token.audience ?? '') === audience)) return true
    const driverName = volume.csi?.driver ?? (await driverOfClaim(pod, claimNameOf(pod, volume), find))
    const driver = driverName ? await find(csiDriverKind, '', driverName) : undefined
    if (driver?.spec?.tokenRequests?.some((request) => (request.audience ?? '') === audience)) return true
  }
  return false
}

type PodVolume = NonNullable<NonNullable<Pod['spec']>['volumes']>[number]

const claimNameOf = ({ metadata }: Pod, { name, ephemeral, persistentVolumeClaim }: PodVolume): string | undefined =>
  ephemeral ? `${metadata.name}-${name}` : persistentVolumeClaim?.claimName

async function driverOfClaim(
  { metadata }: Pod,
  claimName: string | undefined,
  find: NodeTokenDeps['find'],
): Promise<string | undefined> {
  const claim = claimName ? await find(persistentVolumeClaimKind, metadata.namespace ?? '', claimName) : undefined
  const volumeName = claim?.spec?.volumeName
  const volume = volumeName ? await find(persistentVolumeKind, '', volumeName) : undefined
  return volume?.spec?.csi?.driver
}
