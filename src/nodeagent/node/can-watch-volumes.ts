// Asks the server whether the agent's user may list and watch claims, volumes and attachments. The node authorizer of
// Kubernetes allows a node only to get those that its pods use.
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { selfSubjectAccessReviewKind } from '../../api/kinds/reviews/reviews.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { isUnavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'

export interface CanWatchDeps {
  readonly client: Pick<Client, 'create'>
  readonly clock: Clock
  readonly signal: AbortSignal
}

const RETRY_DELAY_MS = 1_000

/** Waits for the server if it is not available. Rejects if the signal is aborted. */
export async function canWatchVolumes({ client, clock, signal }: CanWatchDeps): Promise<boolean> {
  const isAllowed = async ({ group, plural: resource }: Kind, verb: string): Promise<boolean> => {
    const spec = { resourceAttributes: { group, resource, verb } }
    const { status } = await client.create(selfSubjectAccessReviewKind, { metadata: {}, spec }, { signal })
    return status?.allowed === true
  }
  const kinds = [persistentVolumeClaimKind, persistentVolumeKind, volumeAttachmentKind] as readonly Kind[]
  for (;;) {
    try {
      const permissions = await Promise.all(
        kinds.flatMap((kind) => [isAllowed(kind, 'list'), isAllowed(kind, 'watch')]),
      )
      return permissions.every(Boolean)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await clock.sleep(RETRY_DELAY_MS, signal)
    }
  }
}
