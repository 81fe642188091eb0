// Captures the output of all containers on a node, including containers that an earlier agent process started, and finds
// the capture of a run. logs/ has the log format, the capture of one run and the reader.
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { NodeDisk } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import { captureOutput, createOutputPipes, type LogCapture } from './logs/log-capture.ts'
import type { LogLimits } from './logs/log-writer.ts'
import { createRateLimit } from './logs/rate-limit.ts'
import { type RunFiles, runFiles } from './run-records.ts'

/** The rate of all containers together. Beyond it, containers block, so that logs cannot saturate the agent. */
const LOG_BYTES_PER_SECOND_MAX = 16 * 1024 * 1024

export interface ContainerLogsDeps {
  readonly paths: AgentPaths
  readonly disk: NodeDisk
  readonly clock: Clock
  readonly log: Logger
  readonly limits: LogLimits
}

export interface ContainerLogs {
  /** Creates the output pipes of a new run and captures them. The caller closes the files after the start of the process. */
  start(files: RunFiles): Promise<{ readonly stdout: FileHandle; readonly stderr: FileHandle }>
  /** Returns the capture of a run, or undefined if its log is complete. */
  find(files: RunFiles): LogCapture | undefined
  /** Stops the captures of runs in this directory, before it is removed. */
  close(directory: string): Promise<void>
  /** Captures the output of processes that an earlier run of the agent started. Stops all captures when the signal is aborted. */
  run(signal: AbortSignal): Promise<void>
}

export function createContainerLogs({ paths, disk, clock, log, limits }: ContainerLogsDeps): ContainerLogs {
  const captures = new Map<string, LogCapture>()
  const limitRate = createRateLimit({ bytesPerSecond: LOG_BYTES_PER_SECOND_MAX, clock })

  async function capture(files: RunFiles): Promise<void> {
    const onError = (error: Error) =>
      log.warn({ path: files.log, reason: error.message }, 'cannot write a container log')
    const newCapture = await captureOutput({ files, limits, clock, limitRate, onError })
    captures.set(files.directory, newCapture)
    void newCapture.ended.then(() => {
      if (captures.get(files.directory) === newCapture) captures.delete(files.directory)
    })
  }

  async function resumeCaptures(): Promise<void> {
    for (const uid of await disk.list(paths.pods)) {
      for (const name of await disk.list(paths.containers(uid))) {
        for (const run of await disk.list(paths.container(uid, name))) {
          const files = runFiles(join(paths.container(uid, name), run))
          const pipeKinds = [files.stdout, files.stderr].map((path) => disk.kindOf(path))
          if (captures.has(files.directory) || (await Promise.all(pipeKinds)).includes(undefined)) continue
          await capture(files).catch((error: Error) =>
            log.warn({ path: files.log, reason: error.message }, 'cannot capture the output of a container'),
          )
        }
      }
    }
  }

  const closeIn = async (directory: string) => {
    const closing = [...captures].filter(([path]) => path === directory || path.startsWith(join(directory, '/')))
    await Promise.all(closing.map(([, openCapture]) => openCapture.close()))
  }

  return {
    async start(files) {
      const pipes = await createOutputPipes(files)
      try {
        await capture(files)
        return pipes
      } catch (error) {
        await Promise.all([pipes.stdout.close(), pipes.stderr.close()])
        throw error
      }
    },
    find: ({ directory }) => captures.get(directory),
    close: closeIn,
    async run(signal) {
      await resumeCaptures().catch((error: Error) =>
        log.warn({ path: paths.pods, reason: error.message }, 'cannot list the logs of containers'),
      )
      if (!signal.aborted)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      await closeIn('/')
    },
  }
}
