// Adds and removes the finalizer of a data source, with the resourceVersion that was read as a precondition.
import type { Kind, KubeObject } from '../../../api/kind.ts'
import type { Client } from '../../../client/index.ts'

export async function addFinalizer<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  source: Readonly<T>,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { finalizers = [] } = source.metadata
  if (finalizers.includes(finalizer)) return
  await patchFinalizers(client, kind, source, [...finalizers, finalizer], signal)
}

export async function removeFinalizer<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  source: Readonly<T>,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { finalizers = [] } = source.metadata
  if (!finalizers.includes(finalizer)) return
  const remainingFinalizers = finalizers.filter((name) => name !== finalizer)
  await patchFinalizers(client, kind, source, remainingFinalizers.length > 0 ? remainingFinalizers : null, signal)
}

async function patchFinalizers<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  source: Readonly<T>,
  finalizers: readonly string[] | null,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', namespace, uid, resourceVersion } = source.metadata
  const body = { metadata: { uid, resourceVersion, finalizers } }
  await client.patch(kind, { name, ...(namespace ? { namespace } : {}) }, { type: 'merge', body }, { signal })
}
