// Detects that files were changed, replaced by a rename, or reached through another symbolic link, as in mounted Secrets. The
// files are polled, because notifications of the system miss changes behind symbolic links and on some file systems.
import { stat } from 'node:fs/promises'
import type { Clock } from './clock.ts'

export interface WatchFilesOptions {
  readonly paths: readonly string[]
  readonly clock: Clock
  /** Called after a change of any of the files, at most once at a time. It must not reject. */
  readonly onChange: () => Promise<void>
}

const POLL_INTERVAL_MS = 400

/** Detects changes since this call. Returns a function that stops the watch. */
export async function watchFiles({ paths, clock, onChange }: WatchFilesOptions): Promise<() => void> {
  let isStopped = false
  let cancelTimer = () => {}
  let lastState = await readState(paths)

  async function poll(): Promise<void> {
    const state = await readState(paths)
    if (state !== lastState && !isStopped) {
      lastState = state // before the files are read, so that a later change is detected
      await onChange()
    }
    if (!isStopped) schedule()
  }

  function schedule(): void {
    cancelTimer = clock.after(POLL_INTERVAL_MS, () => void poll())
  }

  schedule()
  return () => {
    isStopped = true
    cancelTimer()
  }
}

const readState = async (paths: readonly string[]): Promise<string> =>
  (await Promise.all(paths.map(fileState))).join('\n')

async function fileState(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
