// The interface to a pod's containers, and the implementations for an agent that only mounts volumes: they start no process
// and report the containers as running. host-containers.ts runs processes.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type PodView, viewOfAll } from '../pods/pod-status.ts'

/** Paths of a pod's volumes on the node, by volume name. */
export type VolumePaths = ReadonlyMap<string, VolumePath>

export interface VolumePath {
  readonly path: string
  /** Whether this is a path of the machine. It contained no links when it was checked. */
  readonly isHostPath?: boolean
  readonly isDevice: boolean
  readonly readOnly: boolean
}

/**
 * Returns the arguments with which NodeDisk opens a part of the volume without following links. For a path of the machine they
 * start at the root, because another pod may be able to replace its parts.
 */
export const openingOf = (
  { path, isHostPath }: VolumePath,
  subPath: string,
): readonly [root: string, subPath: string] =>
  isHostPath && !subPath.startsWith('/') ? ['/', `${path.slice(1)}/${subPath}`] : [path, subPath]

export interface Containers {
  /** Creates the cgroup of the pod, whose IO drivers limit when they publish a volume. */
  prepare(uid: string): Promise<void>
  /** Starts or restarts containers that are due, and returns their state. Called again after `onChange`. */
  advance(pod: Readonly<Stored<Pod>>, volumes: VolumePaths): Promise<PodView>
  /** Stops the processes of the pod. Returns whether all have exited. Called again after `onChange`. */
  stop(uid: string, graceSeconds: number): Promise<boolean>
  /** Returns the state of the containers after `stop`. */
  finalView(pod: Readonly<Stored<Pod>>): Promise<PodView>
  /** Removes the records and logs of the pod's containers. */
  removeRecords(uid: string): Promise<void>
  /** Registers a function that is called with the UID of a pod whose containers have changed. */
  onChange(listener: (uid: string) => void): void
  /** Limits the size of the logs until the signal is aborted. Undefined if there are none. */
  run?(signal: AbortSignal): Promise<void>
}

export const noContainers = (): Containers => ({
  prepare: async () => {},
  advance: async (pod) => viewOfAll(pod, { is: 'running' }, { is: 'ended', code: 0, reason: 'Completed' }),
  stop: async () => true,
  finalView: async (pod) => viewOfAll(pod, { is: 'ended', code: 0, reason: 'Completed' }),
  removeRecords: async () => {},
  onChange() {},
})

/**
 * Returns containers that start no process, but still stop the processes that an earlier run of the agent started. If they
 * kept running after their pod, they would keep its volumes mounted and could write to them at the same time as the next pod.
 */
export const withoutNewContainers = (containers: Containers): Containers => ({
  ...containers,
  prepare: noContainers().prepare,
  advance: noContainers().advance,
})
