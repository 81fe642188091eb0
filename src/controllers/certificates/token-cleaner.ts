// Deletes the Secrets of bootstrap tokens a day after they have expired.
import { BOOTSTRAP_TOKEN_NAMESPACE, BOOTSTRAP_TOKEN_TYPE } from '../../api/kinds/secret/bootstrap-token-secret.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import type { Secret } from '../../api/kinds/secret/secret-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject, refOfKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { checkAfter, createController, done, source, type WorkQueue } from '../../runtime/index.ts'

const NAME = 'token-cleaner'
const EXPIRED_RETENTION_MS = 24 * 60 * 60 * 1_000
/** Maximum interval between two checks of a token. */
const RECHECK_MS_MAX = 24 * 60 * 60 * 1_000

export function createTokenCleaner(deps: ControllerDeps): {
  readonly queue: WorkQueue
  run(signal: AbortSignal): Promise<void>
} {
  const { client, caches, clock, random, log, metrics } = deps
  const secrets = caches.of(secretKind, {
    namespace: BOOTSTRAP_TOKEN_NAMESPACE,
    fieldSelector: `type=${BOOTSTRAP_TOKEN_TYPE}`,
  })
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    metrics,
    sources: [source({ cache: secrets, keysOf: (secret) => [keyOfObject(secret)] })],
    async reconcile(key) {
      const secret = secrets.get(refOfKey(key))
      const deleteAtMs = secret && expirationOf(secret) + EXPIRED_RETENTION_MS
      if (!secret || deleteAtMs === undefined || Number.isNaN(deleteAtMs)) return done
      const remainingMs = deleteAtMs - clock.nowMs()
      if (remainingMs > 0)
        return checkAfter(Math.min(remainingMs, RECHECK_MS_MAX), 'the token is deleted a day after it expires')
      const { uid, resourceVersion } = secret.metadata
      try {
        await client.delete(secretKind, refOfKey(key), { uid, resourceVersion })
        log.info({ secret: secret.metadata.name }, 'deleted an expired bootstrap token')
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error // otherwise the change causes another reconcile
      }
      return done
    },
  })
  metrics?.queues.add(controller.queue)
  return controller
}

/** Returns NaN if the token has no valid expiration time. */
const expirationOf = ({ data }: Readonly<Secret>): number =>
  Date.parse(Buffer.from(data?.expiration ?? '', 'base64').toString('utf8'))
