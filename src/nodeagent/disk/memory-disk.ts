// An in-memory implementation of NodeDisk for tests and the simulator. Files survive `reboot`, mounts do not. Fake drivers
// mount with `mountAt` and `unmountAt`.
import { dirname, join, resolve } from 'node:path'
import type { GroupOptions, NodeDisk, PathKind } from './disk.ts'
import { SubPathError } from './disk.ts'
import { splitSubPath } from './sub-path.ts'

export interface MemoryDisk extends NodeDisk {
  /** Returns all paths with their contents: a file's text, `-> target` for a link, otherwise the kind. */
  snapshot(): Record<string, string>
  readonly mountPoints: ReadonlySet<string>
  readonly groups: ReadonlyMap<string, GroupOptions>
  put(path: string, kind: PathKind, text?: string): void
  delete(path: string): void
  mountAt(path: string): void
  unmountAt(path: string): void
  reboot(): void
  /** Called with the operation and the path before a write, except setMode and makeSubPath. An error fails the write. */
  beforeWrite?: (operation: string, path: string) => void
}

interface Entry {
  readonly kind: PathKind
  readonly text: string
}

export function createMemoryDisk(): MemoryDisk {
  const entries = new Map<string, Entry>([['/', { kind: 'directory', text: '' }]])
  const mountPoints = new Set<string>()
  const groups = new Map<string, GroupOptions>()

  const childrenOf = (path: string) => {
    const prefix = path === '/' ? '/' : `${path}/`
    return [...entries.keys()].filter((entryPath) => entryPath !== path && entryPath.startsWith(prefix))
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
  const requireParent = (path: string) => {
    if (!entries.has(dirname(path))) throw systemError('ENOENT', path)
  }
  const beforeWrite = (operation: string, path: string) => disk.beforeWrite?.(operation, path)
  const resolveLink = (path: string): string => {
    const entry = entries.get(path)
    return entry?.kind === 'link' ? resolveLink(resolve(dirname(path), entry.text)) : path
  }

  const disk: MemoryDisk = {
    mountPoints,
    groups,
    put,
    delete(path) {
      for (const child of childrenOf(path)) entries.delete(child)
      entries.delete(path)
    },
    mountAt(path) {
      put(path, entries.get(path)?.kind ?? 'directory')
      mountPoints.add(path)
    },
    unmountAt: (path) => void mountPoints.delete(path),
    reboot: () => mountPoints.clear(),
    snapshot() {
      const visibleEntries = [...entries].filter(([path]) => path !== '/').sort(([a], [b]) => (a < b ? -1 : 1))
      return Object.fromEntries(
        visibleEntries.map(([path, { kind, text }]) => [
          path,
          kind === 'file' ? text : kind === 'link' ? `-> ${text}` : kind,
        ]),
      )
    },

    async makeDirectory(path) {
      beforeWrite('makeDirectory', path)
      if (!entries.has(path)) put(path, 'directory')
      else if (entries.get(resolveLink(path))?.kind !== 'directory') throw systemError('EEXIST', path)
    },
    kindOf: async (path) => entries.get(path)?.kind,
    kindOfTarget: async (path) => entries.get(resolveLink(path))?.kind,
    async resolvePath(path) {
      const parts = path.split('/').filter(Boolean)
      return parts.reduce((parent, part) => resolveLink(join(parent, part)), '/')
    },
    async list(path) {
      const prefix = path === '/' ? '/' : `${path}/`
      const names = childrenOf(path).map((child) => child.slice(prefix.length))
      return names.filter((name) => !name.includes('/')).sort()
    },
    readText: async (path) => (entries.get(path)?.kind === 'file' ? entries.get(path)!.text : undefined),
    async writeText(path, text) {
      beforeWrite('writeText', path)
      requireParent(path)
      entries.set(path, { kind: 'file', text })
    },
    async writeFile(path, content) {
      beforeWrite('writeFile', path)
      requireParent(path)
      put(path, 'file', Buffer.from(content).toString())
    },
    async makeEmptyFile(path) {
      beforeWrite('makeEmptyFile', path)
      if ((await disk.resolvePath(dirname(path))) !== dirname(path)) throw new SubPathError(`${path} contains a link`)
      requireParent(path)
      if (!entries.has(path)) entries.set(path, { kind: 'file', text: '' })
    },
    async removeFile(path) {
      beforeWrite('removeFile', path)
      if (entries.get(path)?.kind === 'directory') throw systemError('EISDIR', path)
      entries.delete(path)
    },
    async removeEmptyDirectory(path) {
      beforeWrite('removeEmptyDirectory', path)
      const entry = entries.get(path)
      if (!entry) return true
      if (entry.kind !== 'directory' || mountPoints.has(path) || childrenOf(path).length > 0) return false
      entries.delete(path)
      return true
    },
    async removeTree(path) {
      beforeWrite('removeTree', path)
      const [mountPoint] = await disk.mountsUnder(path)
      if (mountPoint !== undefined)
        throw new Error(`Cannot remove ${path}: a volume is still mounted at ${mountPoint}.`)
      disk.delete(path)
    },
    async setMode() {},
    async link(target, path) {
      beforeWrite('link', path)
      requireParent(path)
      entries.set(path, { kind: 'link', text: target })
    },

    isMountPoint: async (path) => mountPoints.has(resolveLink(path)),
    mountsUnder: async (path) => [...mountPoints].filter((target) => target === path || target.startsWith(`${path}/`)),
    async bind(source, target) {
      beforeWrite('bind', target)
      if (!entries.has(resolveLink(source))) throw systemError('ENOENT', source)
      if (!entries.has(target)) put(target, entries.get(resolveLink(source))!.kind)
      mountPoints.add(target)
    },
    async mountTmpfs(path) {
      beforeWrite('mountTmpfs', path)
      mountPoints.add(path)
    },
    async unmount(path) {
      beforeWrite('unmount', path)
      mountPoints.delete(path)
    },
    async measureUsage(path) {
      const files = childrenOf(path).map((child) => entries.get(child)!.text.length)
      return files.reduce((total, length) => total + length, 0)
    },
    async applyFsGroup(root, options) {
      beforeWrite('applyFsGroup', root)
      groups.set(root, options)
    },
    async makeSubPath(root, subPath) {
      const volumeRoot = resolveLink(root)
      let path = volumeRoot
      for (const part of splitSubPath(subPath)) {
        path = join(path, part)
        const target = resolveLink(path)
        const isWithin = volumeRoot !== '/' && target.startsWith(`${volumeRoot}/`)
        if (target !== path && !isWithin) {
          throw new SubPathError(
            `subPath ${JSON.stringify(subPath)} contains a link to ${JSON.stringify(target)}, which is not within the volume`,
          )
        }
        path = target
        if (!entries.has(path)) put(path, 'directory')
      }
      return path
    },
    async bindSubPath(root, subPath, target) {
      await disk.bind(await disk.makeSubPath(root, subPath), target)
    },
  }
  return disk
}

/** Applies the effect of a successful node service call to the disk. */
export function applyNodeCall(
  disk: MemoryDisk,
  method: string,
  request: { readonly stagingTargetPath: string; readonly targetPath: string },
): void {
  if (method === 'NodeStageVolume') disk.mountAt(request.stagingTargetPath)
  if (method === 'NodeUnstageVolume') disk.unmountAt(request.stagingTargetPath)
  if (method === 'NodePublishVolume') disk.mountAt(request.targetPath)
  if (method === 'NodeUnpublishVolume') {
    disk.unmountAt(request.targetPath)
    disk.delete(request.targetPath)
  }
}

const systemError = (code: string, path: string) => Object.assign(new Error(`${code}: ${path}`), { code })
