// The containers of a pod, as the pod's reconcile sees them. This file has the usual kind, of which nothing runs: a pod
// is there to have its volumes. Real processes, where the operator allows them, are host-containers.ts.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { everyContainer, type PodView } from '../pods/pod-status.ts'

/** Where a pod's volumes are on the node, by their name in the pod. */
export type VolumePaths = ReadonlyMap<string, VolumePath>

export interface VolumePath {
  readonly path: string
  readonly isDevice: boolean
  readonly readOnly: boolean
}

export interface Containers {
  /** Moves the containers on, and says how they stand. Called again when they call `onChange`. */
  advance(pod: Readonly<Pod>, volumes: VolumePaths): Promise<PodView>
  /** True once nothing of the pod runs any more; called again when they call `onChange`. */
  stop(uid: string, graceSeconds: number): Promise<boolean>
  /** How they stand after `stop`. */
  ended(pod: Readonly<Pod>): Promise<PodView>
  /** Removes what is left of them, logs included. */
  forget(uid: string): Promise<void>
  /** The pod whose containers are to be looked at again. */
  onChange(run: (uid: string) => void): void
}

export const noContainers = (): Containers => ({
  advance: async (pod) => everyContainer(pod, { is: 'running' }, { is: 'ended', code: 0, reason: 'Completed' }),
  stop: async () => true,
  ended: async (pod) => everyContainer(pod, { is: 'ended', code: 0, reason: 'Completed' }),
  forget: async () => {},
  onChange() {},
})

/**
 * The same where processes were allowed before: none is started any more, and those that run still end with their pod.
 * Left alone they would keep its volumes mounted, and write to them beside the next pod.
 */
export const noMoreContainers = (before: Containers): Containers => ({
  ...before,
  advance: noContainers().advance,
})
