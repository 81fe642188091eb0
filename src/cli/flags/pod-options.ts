// The flags of `stowage up` and `stowage node` for pods. The flags for container logs have the same names as those of the kubelet.
import { isAbsolute, normalize } from 'node:path'
import type { Command } from 'commander'
import { isQuantity, quantityToBytes } from '../../api/quantity.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { PodOptions } from '../../nodeagent/index.ts'
import { collectValues } from './common.ts'

const DEFAULT_SIZE = '10Mi'
const DEFAULT_FILES = '5'

export const addPodFlags = (command: Command): Command =>
  command
    .option('--run-commands', 'run the commands of containers as processes on this machine, without isolation')
    .option(
      '--allow-host-path <dir>',
      'directory whose files and subdirectories pods may mount with hostPath; may be repeated (default: none)',
      collectValues,
    )
    .option(
      '--image-command <image=command>',
      'with --run-commands, command of containers that name this image and have no command; may be repeated',
      collectValues,
    )
    .option('--container-log-max-size <size>', 'size at which the log of a container is rotated', DEFAULT_SIZE)
    .option('--container-log-max-files <count>', 'number of log files of a container, 2 or more', DEFAULT_FILES)

export interface PodFlags {
  readonly runCommands?: boolean
  readonly allowHostPath?: readonly string[]
  readonly imageCommand?: readonly string[]
  readonly containerLogMaxSize?: string
  readonly containerLogMaxFiles?: string
}

export const parsePodFlags = (flags: PodFlags): PodOptions => ({
  runCommands: flags.runCommands === true,
  allowedHostPaths: (flags.allowHostPath ?? []).map(parseHostPath),
  imageCommands: (flags.imageCommand ?? []).map(parseImageCommand),
  containerLogs: {
    bytesMax: parseLogSize(flags.containerLogMaxSize ?? DEFAULT_SIZE),
    filesMax: parseLogFiles(flags.containerLogMaxFiles ?? DEFAULT_FILES),
  },
})

function parseHostPath(text: string): string {
  if (isAbsolute(text)) return normalize(text)
  throw new UsageError(`--allow-host-path ${JSON.stringify(text)}: expected an absolute path`)
}

function parseImageCommand(text: string): { image: string; command: string } {
  const [, image, command] = /^([^=\s]+)=(.*\S.*)$/s.exec(text) ?? []
  if (image !== undefined && command !== undefined) return { image, command }
  throw new UsageError(
    `--image-command ${JSON.stringify(text)}: expected an image and a command, such as 'busybox=sleep infinity'`,
  )
}

function parseLogSize(text: string): number {
  const bytes = isQuantity(text) ? Number(quantityToBytes(text)) : Number.NaN
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  throw new UsageError(`--container-log-max-size ${JSON.stringify(text)}: expected a size such as 10Mi`)
}

function parseLogFiles(text: string): number {
  const count = Number(text)
  if (Number.isSafeInteger(count) && count >= 2) return count
  throw new UsageError(`--container-log-max-files ${JSON.stringify(text)}: expected a whole number above 1`)
}
