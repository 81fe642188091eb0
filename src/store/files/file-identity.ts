// Detects that the file at a path is no longer the file that the process has open: it was removed, renamed, replaced,
// hidden by a mount, or truncated. The kernel keeps an open file alive without a path, so writes to it would succeed and be
// lost with the process.
import { type BigIntStats, statSync } from 'node:fs'

/** A file that the process has open. */
export interface FileIdentity {
  readonly path: string
  readonly device: bigint
  readonly inode: bigint
  /** The largest size so far. The store never makes its files smaller. */
  size: bigint
}

/** Returns the identity of the file at `path`, which the process must have open so that its inode is not reused. */
export function identifyFile(path: string): FileIdentity {
  const { dev, ino, size } = statSync(path, { bigint: true })
  return { path, device: dev, inode: ino, size }
}

/** Returns how the file has changed since it was identified, such as `was removed or renamed`, or undefined if it has not. */
export function changeOfFile(file: FileIdentity): string | undefined {
  let currentStats: BigIntStats | undefined
  try {
    currentStats = statSync(file.path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return `cannot be accessed (${(error as NodeJS.ErrnoException).code})`
  }
  if (!currentStats) return 'was removed or renamed'
  if (currentStats.dev !== file.device) return 'was hidden by another file system'
  if (currentStats.ino !== file.inode) return 'was replaced by another file'
  if (currentStats.size < file.size) return `was truncated from ${file.size} to ${currentStats.size} bytes`
  file.size = currentStats.size
  return undefined
}
