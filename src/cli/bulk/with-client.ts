// Calls the code of a bulk command with a client or a cache of the claims, and closes them afterwards.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { loadClientConfig } from '../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../client/index.ts'
import { type Cache, createCache } from '../../runtime/index.ts'
import type { BulkDeps } from './deps.ts'
import type { BulkRequest } from './flags.ts'

/** Calls `run` with a client and the namespace of the kubeconfig. */
export async function withClient(
  { kubeconfig }: BulkRequest,
  userAgent: string,
  deps: BulkDeps,
  run: (client: Client, namespace: string) => Promise<void>,
): Promise<void> {
  const { connection, namespace } = await loadClientConfig(kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, userAgent })
  try {
    await run(client, namespace)
  } finally {
    client.close()
  }
}

export type ClaimCache = Cache<PersistentVolumeClaim>

/**
 * Calls `run` with a cache of all claims of the namespace, or of all namespaces if it is undefined. Claims are not filtered by
 * labels, because a claim that loses its labels would appear deleted.
 */
export async function withClaims<R>(
  client: Client,
  namespace: string | undefined,
  { clock, random }: BulkDeps,
  run: (claims: ClaimCache) => Promise<R>,
): Promise<R> {
  const claims = createCache({ client, kind: persistentVolumeClaimKind, namespace, clock, random })
  const stopController = new AbortController()
  const cacheRun = claims.run(stopController.signal)
  try {
    return await run(claims)
  } finally {
    stopController.abort()
    await cacheRun
  }
}
