// Options for the pods of a node, which an operator sets with flags of `stowage node` and `stowage up`.
import type { LogLimits } from './commands/container-logs.ts'

export interface PodOptions {
  /** Whether to run the commands of containers as processes of this machine. Default false. */
  readonly runCommands?: boolean
  /** Limits of the log files of a container. Default: the limits of the kubelet. */
  readonly containerLogs?: LogLimits
  /** Directories whose files and subdirectories pods may mount with hostPath. Default: none. */
  readonly allowedHostPaths?: readonly string[]
}
