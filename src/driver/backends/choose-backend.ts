// Chooses the backend from the flag, the existing content of the pool, and the abilities of the machine.
import type { HostFacts } from '../../host/index.ts'
import { withFullStop } from '../errors.ts'
import type { BackendName } from './backend.ts'

export type BackendChoice = { readonly backend: BackendName; readonly because: string }

/** Throws if the requested backend is not possible; a pool is never opened with another backend than its volumes have. */
export function chooseBackend({
  wanted,
  holds,
  facts,
}: {
  readonly wanted: 'auto' | BackendName
  /** The backend of the existing volumes in the pool, if there are any. */
  readonly holds: BackendName | undefined
  readonly facts: Pick<HostFacts, 'canLoop' | 'canMount'>
}): BackendChoice {
  const { canLoop, canMount } = facts
  const obstacle = canLoop.yes ? (canMount.yes ? undefined : canMount.because) : canLoop.because
  const chosen = wanted === 'auto' ? (holds ?? (obstacle === undefined ? 'loop' : 'directory')) : wanted
  if (holds && chosen !== holds) {
    throw new Error(
      `The pool contains volumes of the ${holds} backend, so it cannot be used with --backend ${chosen}. Choose another pool.`,
    )
  }
  if (chosen === 'loop' && obstacle !== undefined) {
    throw new Error(
      `The loop backend does not work here: ${withFullStop(obstacle)} Run the driver as root with CAP_SYS_ADMIN${holds ? '' : ', or use --backend directory'}.`,
    )
  }
  if (chosen === 'loop') return { backend: 'loop', because: 'loop devices can be attached and mounted' }
  if (obstacle !== undefined) return { backend: 'directory', because: obstacle }
  return {
    backend: 'directory',
    because:
      wanted === 'auto' ? 'the pool contains volumes of this backend' : 'the driver runs with --backend directory',
  }
}
