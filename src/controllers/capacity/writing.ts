// Writes capacity objects, and classifies failures for the item and for all others.
//
//   gone       404 of an existing object              another writer deleted it; its watch event follows
//   changed    409                                    changed since it was read; reconcile again
//   rejected   400, 413, 422                          the server rejects this object; others may be valid
//   pause      everything else                        a problem of the server, role or namespace that affects all objects

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { backOff, done, type LeaderElection, type Outcome } from '../../runtime/index.ts'
import { capacityKind } from './items.ts'
import type { ObjectAction } from './plan-object.ts'
import type { Published } from './published.ts'
import type { ServerPause } from './server-pause.ts'

export interface Writing {
  readonly client: Client
  readonly published: Pick<Published, 'wrote'>
  readonly pause: Pick<ServerPause, 'failed' | 'succeeded'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

type Capacity = Readonly<CSIStorageCapacity>

export async function applyObject(action: ObjectAction, writing: Writing, signal: AbortSignal): Promise<Outcome> {
  const { client, published } = writing
  switch (action.do) {
    case 'keep':
    case 'leaveOut':
      return done
    case 'create':
      return attempt(writing, signal, async () => {
        published.wrote(await client.create(capacityKind, action.object, { signal }))
      })
    case 'update':
      return attempt(writing, signal, async () => {
        const patch = { type: 'merge', body: action.body } as const
        published.wrote(await client.patch(capacityKind, refOf(action.object), patch, { signal }))
      })
  }
}

/** Conditional on uid and resourceVersion: another writer may have changed it. */
export async function deleteObject(object: Capacity, writing: Writing, signal: AbortSignal): Promise<Outcome> {
  const { uid, resourceVersion } = object.metadata
  const outcome = await attempt(writing, signal, async () => {
    await writing.client.delete(capacityKind, refOf(object), { uid, resourceVersion, signal })
  })
  return outcome === GONE ? done : outcome
}

const GONE = backOff('the object is gone; waiting to see that')

async function attempt(writing: Writing, signal: AbortSignal, write: () => Promise<void>): Promise<Outcome> {
  const { pause, election } = writing
  election?.assertStillLeader()
  try {
    await write()
    pause.succeeded()
    return done
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { code, message } = error
    if (signal.aborted) return backOff('stopping') // the error says nothing about the server
    if (isConflict(error) || isAlreadyExists(error))
      return backOff(`the object changed during the reconcile: ${message}`)
    if (isNotFound(error) && error.details?.kind === capacityKind.plural) return GONE
    if (REJECTED.includes(code)) return backOff(`the API server rejected the object: ${message}`)
    pause.failed(message)
    return backOff(`the API server failed: ${message}`)
  }
}

const REJECTED: readonly number[] = [400, 413, 422]

const refOf = ({ metadata: { namespace = '', name = '' } }: Capacity) => ({ namespace, name })
