// The annotation that requests an immediate retry of an object's waiting operations. Every user with permission to patch
// the object can set it, on any API server. controller.ts handles it for every queue, scheduler/event-handlers.ts for
// pods.
import type { KubeObject } from '../../api/kind.ts'

/** The value of the annotation is the time of the request. A change of the value is a new request. */
export const RETRY_ANNOTATION = 'stowage.dev/retry-requested'

/** Returns whether an update of the object requests a retry. */
export function isRetryRequested(next: Readonly<KubeObject>, old: Readonly<KubeObject>): boolean {
  const requestTime = next.metadata.annotations?.[RETRY_ANNOTATION]
  return requestTime !== undefined && requestTime !== old.metadata.annotations?.[RETRY_ANNOTATION]
}
