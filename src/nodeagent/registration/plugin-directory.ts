// Lists the sockets in the registration directory and its subdirectories. Skips sockets and directories whose name begins with a
// dot. The directory must also be scanned periodically, because some file systems send no events to fs.watch.
import { type FSWatcher, watch } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../base/log.ts'

export interface PluginSocket {
  readonly path: string
  /** Changes when the socket is recreated. */
  readonly id: string
}

export interface PluginDirectory {
  list(): Promise<PluginSocket[]>
  /** Whether `watch` reports every change, so that scans can be rare. */
  readonly watchesAll?: true
  /** Calls the function when the directory may have changed. Returns a function that stops watching. */
  watch(onChange: () => void): () => void
}

const SOCKETS_MAX = 1_000 // further sockets are ignored
const DEPTH_MAX = 8

export function createPluginDirectory(options: { readonly path: string; readonly log: Logger }): PluginDirectory {
  const { path: root, log } = options
  async function collectSockets(directory: string, depth: number, sockets: PluginSocket[]): Promise<void> {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (entry.name.startsWith('.') || sockets.length >= SOCKETS_MAX) continue
      const path = join(directory, entry.name)
      if (entry.isDirectory() && depth < DEPTH_MAX) await collectSockets(path, depth + 1, sockets)
      if (!entry.isSocket()) continue
      const stats = await lstat(path, { bigint: true }).catch(() => undefined)
      if (stats) sockets.push({ path, id: `${stats.ino}:${stats.birthtimeNs}` })
    }
  }

  return {
    async list() {
      const sockets: PluginSocket[] = []
      await mkdir(root, { recursive: true, mode: 0o755 })
      await collectSockets(root, 0, sockets)
      return sockets.sort((a, b) => (a.path < b.path ? -1 : 1))
    },
    watch(onChange) {
      let watcher: FSWatcher | undefined
      try {
        watcher = watch(root, { persistent: false }, onChange)
        watcher.on('error', (error) =>
          log.debug({ path: root, reason: error.message }, 'cannot watch this directory; it is scanned periodically'),
        )
      } catch (error) {
        log.debug(
          { path: root, reason: (error as Error).message },
          'cannot watch this directory; it is scanned periodically',
        )
      }
      return () => watcher?.close()
    },
  }
}
