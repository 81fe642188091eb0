// Lists the sockets in the registration directory and its subdirectories. A recreated socket has another id. fs.watch
// only triggers the next scan earlier: some file systems send no events.
import { type FSWatcher, watch } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../base/log.ts'

export interface FoundSocket {
  readonly path: string
  /** Changes when the socket is recreated. */
  readonly id: string
}

export interface PluginDirectory {
  list(): Promise<FoundSocket[]>
  /** `watch` reports every change, so that scans can be rare. */
  readonly watchesAll?: true
  /** Calls back when the directory may have changed. The returned function stops it. */
  watch(changed: () => void): () => void
}

const SOCKETS_MAX = 1_000 // further sockets are ignored
const DEPTH_MAX = 8

export function createPluginDirectory({ path, log }: { readonly path: string; readonly log: Logger }): PluginDirectory {
  async function listIn(directory: string, depth: number, found: FoundSocket[]): Promise<void> {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (entry.name.startsWith('.') || found.length >= SOCKETS_MAX) continue
      const at = join(directory, entry.name)
      if (entry.isDirectory() && depth < DEPTH_MAX) await listIn(at, depth + 1, found)
      if (!entry.isSocket()) continue
      const facts = await lstat(at, { bigint: true }).catch(() => undefined)
      if (facts) found.push({ path: at, id: `${facts.ino}:${facts.birthtimeNs}` })
    }
  }

  return {
    async list() {
      const found: FoundSocket[] = []
      await mkdir(path, { recursive: true, mode: 0o755 })
      await listIn(path, 0, found)
      return found.sort((a, b) => (a.path < b.path ? -1 : 1))
    },
    watch(changed) {
      let watcher: FSWatcher | undefined
      try {
        watcher = watch(path, { persistent: false }, changed)
        watcher.on('error', (error) =>
          log.debug({ path, because: error.message }, 'cannot watch this directory; it is scanned periodically'),
        )
      } catch (error) {
        log.debug(
          { path, because: (error as Error).message },
          'cannot watch this directory; it is scanned periodically',
        )
      }
      return () => watcher?.close()
    },
  }
}
