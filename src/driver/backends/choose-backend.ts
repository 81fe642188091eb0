// Chooses the backend by the flag, the content of the pool, and the abilities of the machine.
import type { HostFacts } from '../../host/index.ts'
import { withFullStop } from '../errors.ts'
import type { BackendName } from './backend.ts'

export type BackendChoice = { readonly backend: BackendName; readonly message: string }

/** Throws if the requested backend is not supported, or if the pool has content of another backend. */
export function chooseBackend({
  requestedBackend,
  existingBackend,
  facts,
}: {
  readonly requestedBackend: 'auto' | BackendName
  /** The backend of the volumes and snapshots in the pool, if there are any. */
  readonly existingBackend: BackendName | undefined
  readonly facts: Pick<HostFacts, 'canLoop' | 'canMount'>
}): BackendChoice {
  const { canLoop, canMount } = facts
  const obstacle = canLoop.available ? (canMount.available ? undefined : canMount.message) : canLoop.message
  const backend =
    requestedBackend === 'auto'
      ? (existingBackend ?? (obstacle === undefined ? 'loop' : 'directory'))
      : requestedBackend
  if (existingBackend && backend !== existingBackend) {
    throw new Error(
      `The pool has content of the ${existingBackend} backend, so it cannot be used with --backend ${backend}. Choose another pool.`,
    )
  }
  if (backend === 'loop' && obstacle !== undefined) {
    throw new Error(
      `The loop backend does not work here: ${withFullStop(obstacle)} Run the driver as root with CAP_SYS_ADMIN${existingBackend ? '' : ', or use --backend directory'}.`,
    )
  }
  if (backend === 'loop') return { backend: 'loop', message: 'loop devices can be attached and mounted' }
  if (obstacle !== undefined) return { backend: 'directory', message: obstacle }
  return {
    backend: 'directory',
    message:
      requestedBackend === 'auto' ? 'the pool has content of this backend' : 'the driver runs with --backend directory',
  }
}
