// Finds the owner of the capacity objects: when it is deleted, the garbage collector deletes them. Starting at the pod of
// this process, each level is the controller of the previous one.
//
//   0 the pod     1 its DaemonSet, StatefulSet or ReplicaSet     2 the Deployment of the ReplicaSet
import { defineForeignKind } from '../../api/foreign-kind.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'

export interface OwnerSearch {
  readonly namespace: string
  readonly podName: string
  readonly level: number
}

export async function findOwner(client: Client, search: OwnerSearch, signal?: AbortSignal): Promise<OwnerReference> {
  const { namespace, podName, level } = search
  const options = signal ? { signal } : {}
  let currentObject: Readonly<KubeObject>
  try {
    currentObject = await client.get(podKind, { namespace, name: podName }, options)
  } catch (error) {
    throw isNotFound(error) ? noSuchPod(search) : error
  }
  if (currentObject.metadata.deletionTimestamp)
    throw new Error(`Cannot use the owner of capacity objects: the pod ${namespace}/${podName} is being deleted.`)
  let owner: OwnerReference = referenceTo({ apiVersion: 'v1', kind: 'Pod', name: podName, uid: uidOf(currentObject) })
  for (let step = 1; step <= level; step++) {
    const controllerRef = currentObject.metadata.ownerReferences?.find(({ controller }) => controller)
    if (!controllerRef) {
      throw new Error(
        `Cannot find the owner of capacity objects at level ${level} above the pod ${namespace}/${podName}: ` +
          `${owner.kind} ${owner.name} has no controller. Lower --capacity-ownerref-level to ${step - 1}, or to -1 for no owner.`,
      )
    }
    owner = referenceTo(controllerRef)
    // The last owner is not read, so the role need not grant access to it.
    if (step < level)
      currentObject = await client.get(kindOf(controllerRef), { namespace, name: controllerRef.name }, options)
  }
  return owner
}

const noSuchPod = ({ namespace, podName }: OwnerSearch) =>
  new Error(
    `Cannot find the owner of capacity objects: the pod ${namespace}/${podName} does not exist. ` +
      'Set $POD_NAME and $NAMESPACE from the metadata of the pod, or --capacity-ownerref-level to -1 for no owner.',
  )

const referenceTo = ({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
})

const uidOf = ({ metadata: { uid = '' } }: Readonly<KubeObject>): string => uid

/** Returns a kind that is sufficient to read a controller: namespaced, with a regular plural. */
function kindOf({ apiVersion, kind }: OwnerReference): Kind {
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  const plural = pluralOf(kind.toLowerCase())
  return defineForeignKind({
    group,
    versions: [version],
    kind,
    plural,
    namespaced: true,
    doc: 'A kind of another system.',
  })
}

function pluralOf(singular: string): string {
  if (singular.endsWith('s')) return `${singular}es`
  if (singular.endsWith('y')) return `${singular.slice(0, -1)}ies`
  return `${singular}s`
}
