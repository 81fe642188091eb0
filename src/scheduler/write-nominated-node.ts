// Writes the node for which a pod is nominated into its status.
import { podKind } from '../api/kinds/pod/pod.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import { type Client, refOfKey } from '../client/index.ts'
import type { PodInfo } from './cluster/pod-info.ts'

interface WriteDeps {
  readonly client: Client
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
}

/** Removes the nomination if the name is empty. Does nothing for a pod that no longer exists. */
export async function writeNominatedNode(
  { key, uid }: PodInfo,
  nodeName: string,
  { client, write }: WriteDeps,
): Promise<void> {
  const body = { metadata: { uid }, status: { nominatedNodeName: nodeName || null } }
  try {
    await write(() => client.patch(podKind, refOfKey(key), { type: 'merge', body }, { subresource: 'status' }))
  } catch (error) {
    const isGone = isNotFound(error) || isConflict(error) // a conflict means that another pod has its name
    if (!isGone) throw error
  }
}
