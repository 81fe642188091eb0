// Writes capacity objects and classifies failures:
//
//   404 of an existing object   another writer deleted the object; its watch event will arrive
//   409                         the object has changed since it was read; reconcile again
//   400, 413, 422               the server rejects this object, but may accept others
//   other errors                the server, role or namespace causes errors for all objects; pause all writes

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { backOff, done, type LeaderElection, type Outcome } from '../../runtime/index.ts'
import { capacityKind } from './items.ts'
import type { ObjectAction } from './plan-object.ts'
import type { PublishedObjects } from './published-objects.ts'
import type { ServerPause } from './server-pause.ts'

export interface WriteContext {
  readonly client: Client
  readonly publishedObjects: Pick<PublishedObjects, 'addWrittenObject'>
  readonly pause: Pick<ServerPause, 'recordFailure' | 'recordSuccess'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

type Capacity = Readonly<CSIStorageCapacity>

export async function applyObject(action: ObjectAction, context: WriteContext, signal: AbortSignal): Promise<Outcome> {
  const { client, publishedObjects } = context
  switch (action.do) {
    case 'keep':
    case 'omit':
      return done
    case 'create':
      return tryWrite(context, signal, async () => {
        publishedObjects.addWrittenObject(await client.create(capacityKind, action.object, { signal }))
      })
    case 'update':
      return tryWrite(context, signal, async () => {
        const patch = { type: 'merge', body: action.body } as const
        publishedObjects.addWrittenObject(await client.patch(capacityKind, refOf(action.object), patch, { signal }))
      })
  }
}

/** Deletes the object with its uid and resourceVersion as preconditions, because another writer may have changed it. */
export async function deleteObject(object: Capacity, context: WriteContext, signal: AbortSignal): Promise<Outcome> {
  const { uid, resourceVersion } = object.metadata
  const outcome = await tryWrite(context, signal, async () => {
    await context.client.delete(capacityKind, refOf(object), { uid, resourceVersion, signal })
  })
  return outcome === OBJECT_DELETED ? done : outcome
}

const OBJECT_DELETED = backOff('the object was deleted; waiting for its watch event')

async function tryWrite(context: WriteContext, signal: AbortSignal, write: () => Promise<void>): Promise<Outcome> {
  const { pause, election } = context
  election?.assertStillLeader()
  try {
    await write()
    pause.recordSuccess()
    return done
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { code, message } = error
    if (signal.aborted) return backOff('stopping') // the server did not cause the error
    if (isConflict(error) || isAlreadyExists(error))
      return backOff(`the object changed during the reconcile: ${message}`)
    if (isNotFound(error) && error.details?.kind === capacityKind.plural) return OBJECT_DELETED
    if (REJECTION_CODES.includes(code)) return backOff(`the API server rejected the object: ${message}`)
    pause.recordFailure(message)
    return backOff(`the API server failed: ${message}`)
  }
}

const REJECTION_CODES: readonly number[] = [400, 413, 422]

const refOf = ({ metadata: { namespace = '', name = '' } }: Capacity) => ({ namespace, name })
