// Opens a container's input and attaches clients to it. The input is a named pipe that the container itself holds open, so
// it stays open between attachments and across restarts of the agent. With stdinOnce it ends when the first attached client
// ends its input, or with the agent.
import { constants, openSync } from 'node:fs'
import { type FileHandle, open, readlink } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { ContainerNotRunningError, type ContainerProcess } from './exec-in-container.ts'
import { type LogCapture, makePipes } from './logs/log-capture.ts'
import type { RunFiles } from './run-records.ts'
import { resizeTerminal } from './terminal.ts'

export interface AttachOptions {
  readonly stdin?: boolean
}

/** Output that is buffered for a slow client. Beyond this, the container blocks for at most SLOW_CLIENT_MS_MAX. */
const ATTACHED_BYTES_MAX = 256 * 1024
/** A client that does not read for this long is detached, so that it cannot block the container. */
const SLOW_CLIENT_MS_MAX = 10_000

export interface ContainerInputs {
  /** Opens the input for a new process. Returns undefined for a container without stdin or a terminal: its input is empty. */
  open(files: RunFiles, container: Readonly<Container>): Promise<FileHandle | undefined>
  attach(container: AttachedContainer, options: AttachOptions): ContainerProcess
  /** Ends the input of runs in this directory whose container has stdinOnce. */
  close(directory: string): Promise<void>
}

export function createContainerInputs({ clock }: { readonly clock: Clock }): ContainerInputs {
  /** The files that keep the input of containers with stdinOnce open, by the path of the pipe. */
  const openInputs = new Map<string, FileHandle>()

  async function closeInput(path: string): Promise<void> {
    const input = openInputs.get(path)
    openInputs.delete(path)
    await input?.close()
  }

  return {
    async open(files, { stdin = false, stdinOnce = false, tty = false }) {
      if (!stdin && !tty) return undefined // an empty input would end the terminal's input at once: script(1) passes the end on
      await makePipes([files.stdin])
      const input = await open(files.stdin, 'r+')
      if (!stdinOnce) return input
      openInputs.set(files.stdin, input)
      return open(files.stdin, 'r')
    },
    attach: (attached, options) => attach(attached, options, { clock, closeInput }),
    async close(directory) {
      for (const path of openInputs.keys()) if (path.startsWith(join(directory, '/'))) await closeInput(path)
    },
  }
}

interface AttachDeps {
  readonly clock: Clock
  closeInput(path: string): Promise<void>
}

function attach(
  { container, pid, files, capture }: AttachedContainer,
  { stdin = false }: AttachOptions,
  { clock, closeInput }: AttachDeps,
): ContainerProcess {
  const outputs = { stdout: createOutput(), stderr: createOutput() }
  const input = stdin && container.stdin ? openWritingEnd(files.stdin) : undefined
  let detach = () => {}
  const exitCode = new Promise<number>((resolve) => {
    detach = () => resolve(0)
    void capture.ended.then(detach)
  })
  const removeListener = capture.onOutput((stream, chunk) => forward(outputs[stream], chunk, clock, detach))
  input?.on('error', () => {}) // the container may close its input
  input?.on('finish', () => {
    if (container.stdinOnce) void closeInput(files.stdin)
  })
  void exitCode.then(() => {
    removeListener()
    input?.destroy()
    for (const output of Object.values(outputs)) output.end()
  })
  return {
    stdin: input,
    stdout: outputs.stdout,
    stderr: container.tty ? undefined : outputs.stderr,
    exitCode,
    async resize(size) {
      const terminal = container.tty ? await readlink(`/proc/${pid}/fd/0`).catch(() => undefined) : undefined
      if (terminal) await resizeTerminal(terminal, size)
    },
    kill: detach,
  }
}

interface AttachedContainer {
  readonly container: Readonly<Container>
  readonly pid: number
  readonly files: RunFiles
  readonly capture: LogCapture
}

const createOutput = (): PassThrough => new PassThrough({ highWaterMark: ATTACHED_BYTES_MAX })

/** Returns a promise if the container has to wait for the client. */
function forward(output: PassThrough, chunk: Uint8Array, clock: Clock, detach: () => void): Promise<void> | undefined {
  if (output.writableEnded || output.write(chunk)) return undefined
  return new Promise((resolve) => {
    const cancelTimer = clock.after(SLOW_CLIENT_MS_MAX, detach)
    const finish = () => {
      cancelTimer()
      resolve()
    }
    output.once('drain', finish)
    output.once('finish', finish)
    output.once('close', finish)
  })
}

function openWritingEnd(path: string): Socket {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch {
    throw new ContainerNotRunningError('the container has closed its input')
  }
}
