// The interface to a pod's containers, and the default implementation, which runs no process: a pod only gets its volumes
// mounted. Real processes are host-containers.ts.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { everyContainer, type PodView } from '../pods/pod-status.ts'

/** Paths of a pod's volumes on the node, by volume name. */
export type VolumePaths = ReadonlyMap<string, VolumePath>

export interface VolumePath {
  readonly path: string
  readonly isDevice: boolean
  readonly readOnly: boolean
}

export interface Containers {
  /** Starts or restarts containers as due and returns their state. Called again after `onChange`. */
  advance(pod: Readonly<Pod>, volumes: VolumePaths): Promise<PodView>
  /** True once no process of the pod runs; called again after `onChange`. */
  stop(uid: string, graceSeconds: number): Promise<boolean>
  /** Their state after `stop`. */
  ended(pod: Readonly<Pod>): Promise<PodView>
  /** Removes their records and logs. */
  forget(uid: string): Promise<void>
  /** Called with the uid of a pod whose containers have changed. */
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
 * For an agent that ran commands before: starts no process, but stops running ones with their pod. Otherwise they would
 * keep its volumes mounted and write to them beside the next pod.
 */
export const withoutNewContainers = (before: Containers): Containers => ({
  ...before,
  advance: noContainers().advance,
})
