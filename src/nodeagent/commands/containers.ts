// The interface to a pod's containers, and the implementations for an agent that only mounts volumes: they start no process
// and report the containers as running. host-containers.ts runs processes.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { EventDetails } from '../../runtime/index.ts'
import { type PodView, viewOfAll } from '../pods/pod-status.ts'
import type { AttachOptions } from './container-input.ts'
import { ContainerNotRunningError, type ContainerProcess, type ExecOptions } from './exec-in-container.ts'
import type { LogCapture } from './logs/log-capture.ts'
import type { VolumePaths } from './volume-path.ts'

export interface Containers {
  /** Whether containers run commands. `advance` then prepares their subPaths; otherwise the caller does. Default false. */
  readonly runsCommands?: boolean
  /** Creates the pod's cgroup, so that drivers can set its IO limits when they publish a volume. */
  prepare(uid: string): Promise<void>
  /** Starts or restarts containers that are due, and returns their state. Called again after `onChange`. */
  advance(pod: Readonly<Stored<Pod>>, volumes: VolumePaths): Promise<PodView>
  /** Starts a command in a running container of the pod. Throws ContainerNotRunningError. */
  exec(pod: Readonly<Stored<Pod>>, containerName: string, options: ExecOptions): Promise<ContainerProcess>
  /**
   * Attaches to a running container of the pod: to its output from now on and, with `stdin`, to its input. The returned process
   * is the attachment: killing it detaches, and the container keeps running. Throws ContainerNotRunningError.
   */
  attach(pod: Readonly<Stored<Pod>>, containerName: string, options: AttachOptions): Promise<ContainerProcess>
  /** Returns the log of the latest or the previous run of a container, or undefined if there is no such run. */
  findLog(
    pod: Readonly<Stored<Pod>>,
    containerName: string,
    options: { readonly previous: boolean },
  ): Promise<ContainerLog | undefined>
  /** Stops the pod's processes. Returns whether all have exited. Called again after `onChange`. */
  stop(uid: string, graceSeconds: number): Promise<boolean>
  /** Returns the state of the containers after `stop`. */
  finalView(pod: Readonly<Stored<Pod>>): Promise<PodView>
  /** Removes the records and logs of the pod's containers. */
  removeRecords(uid: string): Promise<void>
  /** Registers a function that is called with the UID of a pod whose containers have changed. */
  onChange(listener: (uid: string) => void): void
  /** Registers a function that records an event about a pod. */
  onEvent(listener: (pod: Readonly<Stored<Pod>>, event: EventDetails) => void): void
  /**
   * Captures the output of containers that an earlier run of the agent started. Stops all captures when the signal is aborted.
   */
  run?(signal: AbortSignal): Promise<void>
}

async function rejectCommands(): Promise<never> {
  throw new ContainerNotRunningError('this node runs no commands; start its agent with --run-commands')
}

/** The log of one run of a container. */
export interface ContainerLog {
  /** The file that is written to; older parts have numbers. */
  readonly path: string
  /** Undefined if the log is complete. */
  readonly capture: LogCapture | undefined
  /** Returns whether the command has exited. */
  hasEnded(): Promise<boolean>
}

export const noContainers = (): Containers => ({
  prepare: async () => {},
  advance: async (pod) => viewOfAll(pod, { is: 'running' }, { is: 'ended', code: 0, reason: 'Completed' }),
  exec: rejectCommands,
  attach: rejectCommands,
  findLog: async () => undefined,
  stop: async () => true,
  finalView: async (pod) => viewOfAll(pod, { is: 'ended', code: 0, reason: 'Completed' }),
  removeRecords: async () => {},
  onChange() {},
  onEvent() {},
})

/**
 * Returns containers that start no process, but still stop the processes that an earlier run of the agent started. If they
 * kept running after their pod, they would keep its volumes mounted and could write to them at the same time as the next pod.
 */
export const withoutNewContainers = (containers: Containers): Containers => ({
  ...containers,
  runsCommands: false,
  prepare: noContainers().prepare,
  advance: noContainers().advance,
  exec: rejectCommands,
  attach: rejectCommands,
})
