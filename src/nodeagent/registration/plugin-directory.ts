// The sockets that lie in the registration directory, and in directories below it. A socket that was made anew is
// another one, whatever its name. The system's notices only hasten the next look: some file systems send none.
import { type FSWatcher, watch } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../base/log.ts'

export interface FoundSocket {
  readonly path: string
  /** Differs for a socket that was removed and made again. */
  readonly id: string
}

export interface PluginDirectory {
  list(): Promise<FoundSocket[]>
  /** `watch` tells of every change, so nobody need look for what it left out. */
  readonly tellsAll?: true
  /** Called when something in it may have changed. The returned function ends it. */
  watch(changed: () => void): () => void
}

const SOCKETS_MAX = 1_000 // more are somebody's mistake; the rest are not looked at
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
        watcher.on('error', (error) => log.debug({ path, because: error.message }, 'no notices about this directory'))
      } catch (error) {
        log.debug({ path, because: (error as Error).message }, 'no notices about this directory')
      }
      return () => watcher?.close()
    },
  }
}
