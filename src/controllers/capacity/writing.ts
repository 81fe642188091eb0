// Writes of capacity objects: what each kind of failure means for the item it was for, and for all others.
//
//   gone       404 of an object that was there        someone else deleted it; the watch will tell
//   changed    409                                    not as it was judged; look again
//   refused    400, 413, 422                          the server will not have this one object; others may be fine
//   pause      everything else                        the server, its rules or the namespace; nothing else would fare better

import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { ApiError } from '../../api/status-error.ts'
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

/** Only the very object that was judged, as it was judged: it may be someone else's by now. */
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
    if (signal.aborted) return backOff('it is time to stop') // which says nothing about the server
    if (code === 409) return backOff(`it changed meanwhile: ${message}`)
    if (code === 404 && error.details?.kind === capacityKind.plural) return GONE
    if (REFUSED.includes(code)) return backOff(`the server does not take it: ${message}`)
    pause.failed(message)
    return backOff(`the server could not be asked: ${message}`)
  }
}

const REFUSED: readonly number[] = [400, 413, 422]

const refOf = ({ metadata: { namespace = '', name = '' } }: Capacity) => ({ namespace, name })
