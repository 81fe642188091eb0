// A model of a node's files and mounts, for tests and the simulator. Files survive `reboot`, mounts do not. Drivers act on
// it through `mountAt` and `put`.
import { dirname, join } from 'node:path'
import type { GroupOptions, NodeDisk, PathKind } from './disk.ts'
import { SubPathError } from './disk.ts'
import { partsOf } from './sub-path.ts'

export interface MemoryDisk extends NodeDisk {
  /** Every path with its content, sorted: `directory`, a file's text, or `-> target` for a link. */
  show(): Record<string, string>
  readonly mounted: ReadonlySet<string>
  readonly groups: ReadonlyMap<string, GroupOptions>
  put(path: string, what: PathKind, text?: string): void
  take(path: string): void
  mountAt(path: string): void
  unmountAt(path: string): void
  reboot(): void
  /** Called before every write, with operation and path; an error it throws fails the write. */
  beforeWrite?: (write: string, path: string) => void
}

interface Entry {
  readonly kind: PathKind
  readonly text: string
}

export function createMemoryDisk(): MemoryDisk {
  const entries = new Map<string, Entry>([['/', { kind: 'directory', text: '' }]])
  const mounted = new Set<string>()
  const groups = new Map<string, GroupOptions>()

  const childrenOf = (path: string) => {
    const prefix = path === '/' ? '/' : `${path}/`
    return [...entries.keys()].filter((other) => other !== path && other.startsWith(prefix))
  }
  const makeParents = (path: string) => {
    for (let parent = dirname(path); !entries.has(parent); parent = dirname(parent)) {
      entries.set(parent, { kind: 'directory', text: '' })
    }
  }
  const put = (path: string, kind: PathKind, text = '') => {
    makeParents(path)
    entries.set(path, { kind, text })
  }
  const needParent = (path: string) => {
    if (!entries.has(dirname(path))) throw systemError('ENOENT', path)
  }
  const write = (name: string, path: string) => disk.beforeWrite?.(name, path)
  const behind = (path: string): string => {
    const entry = entries.get(path)
    return entry?.kind === 'link' ? behind(entry.text) : path
  }

  const disk: MemoryDisk = {
    mounted,
    groups,
    put,
    take(path) {
      for (const child of childrenOf(path)) entries.delete(child)
      entries.delete(path)
    },
    mountAt(path) {
      put(path, entries.get(path)?.kind ?? 'directory')
      mounted.add(path)
    },
    unmountAt: (path) => void mounted.delete(path),
    reboot: () => mounted.clear(),
    show() {
      const shown = [...entries].filter(([path]) => path !== '/').sort(([a], [b]) => (a < b ? -1 : 1))
      return Object.fromEntries(
        shown.map(([path, { kind, text }]) => [path, kind === 'file' ? text : kind === 'link' ? `-> ${text}` : kind]),
      )
    },

    async makeDirectory(path) {
      write('makeDirectory', path)
      if (!entries.has(path)) put(path, 'directory')
      else if (entries.get(behind(path))?.kind !== 'directory') throw systemError('EEXIST', path)
    },
    kindOf: async (path) => entries.get(path)?.kind,
    kindBehind: async (path) => entries.get(behind(path))?.kind,
    async list(path) {
      const prefix = path === '/' ? '/' : `${path}/`
      const names = childrenOf(path).map((child) => child.slice(prefix.length))
      return names.filter((name) => !name.includes('/')).sort()
    },
    readText: async (path) => (entries.get(path)?.kind === 'file' ? entries.get(path)!.text : undefined),
    async writeText(path, text) {
      write('writeText', path)
      needParent(path)
      entries.set(path, { kind: 'file', text })
    },
    async makeEmptyFile(path) {
      write('makeEmptyFile', path)
      needParent(path)
      if (!entries.has(path)) entries.set(path, { kind: 'file', text: '' })
    },
    async removeFile(path) {
      write('removeFile', path)
      if (entries.get(path)?.kind === 'directory') throw systemError('EISDIR', path)
      entries.delete(path)
    },
    async removeEmptyDirectory(path) {
      write('removeEmptyDirectory', path)
      const entry = entries.get(path)
      if (!entry) return true
      if (entry.kind !== 'directory' || mounted.has(path) || childrenOf(path).length > 0) return false
      entries.delete(path)
      return true
    },
    async removeScratch(path) {
      write('removeScratch', path)
      const [still] = await disk.mountsUnder(path)
      if (still !== undefined) throw new Error(`Cannot remove ${path}: something is still mounted at ${still}.`)
      disk.take(path)
    },
    async setMode() {},
    async link(target, path) {
      write('link', path)
      needParent(path)
      entries.set(path, { kind: 'link', text: target })
    },

    isMountPoint: async (path) => mounted.has(behind(path)),
    mountsUnder: async (path) => [...mounted].filter((one) => one === path || one.startsWith(`${path}/`)),
    async bind(from, to) {
      write('bind', to)
      if (!entries.has(behind(from))) throw systemError('ENOENT', from)
      if (!entries.has(to)) put(to, entries.get(behind(from))!.kind)
      mounted.add(to)
    },
    async mountMemory(path) {
      write('mountMemory', path)
      mounted.add(path)
    },
    async unmount(path) {
      write('unmount', path)
      mounted.delete(path)
    },
    async giveToGroup(root, options) {
      write('giveToGroup', root)
      groups.set(root, options)
    },
    async makeSubPath(root, subPath) {
      let at = behind(root)
      for (const part of partsOf(subPath)) {
        at = join(at, part)
        if (entries.get(at)?.kind === 'link') {
          throw new SubPathError(`subPath ${JSON.stringify(subPath)} leads through a link, which is not followed`)
        }
        if (!entries.has(at)) put(at, 'directory')
      }
      return at
    },
    async bindSubPath(root, subPath, to) {
      await disk.bind(await disk.makeSubPath(root, subPath), to)
    },
  }
  return disk
}

/** The effect of a successful node service call on the disk. */
export function mountAsAsked(
  disk: MemoryDisk,
  method: string,
  request: { readonly stagingTargetPath: string; readonly targetPath: string },
): void {
  if (method === 'NodeStageVolume') disk.mountAt(request.stagingTargetPath)
  if (method === 'NodeUnstageVolume') disk.unmountAt(request.stagingTargetPath)
  if (method === 'NodePublishVolume') disk.mountAt(request.targetPath)
  if (method === 'NodeUnpublishVolume') {
    disk.unmountAt(request.targetPath)
    disk.take(request.targetPath)
  }
}

const systemError = (code: string, path: string) => Object.assign(new Error(`${code}: ${path}`), { code })
