// Options for the pods of a node, which an operator sets with flags of `stowage node` and `stowage up`.
import type { ImageCommand } from './commands/images.ts'
import type { LogLimits } from './commands/logs/log-writer.ts'

export interface PodOptions {
  /** Whether to run the commands of containers as processes of this machine. Default false. */
  readonly runCommands?: boolean
  /** The commands of images, for containers without a command. They take precedence over those in commands/images.ts. */
  readonly imageCommands?: readonly ImageCommand[]
  /** Limits of the log files of a container. Default: the kubelet's limits. */
  readonly containerLogs?: LogLimits
  /** Directories whose files and subdirectories pods may mount with hostPath. Default: none. */
  readonly allowedHostPaths?: readonly string[]
}
