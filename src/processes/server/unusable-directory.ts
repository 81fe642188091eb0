// Explains system errors about directories that are set by flags. Other errors already have a message for users.

interface DirectoryUse {
  readonly path: string
  readonly purpose: 'data directory' | 'credentials directory'
  /** The flag that chooses another directory. */
  readonly flag: '--data-dir' | '--pki-dir'
}

/** Returns a function for `catch` that rethrows a system error with the directory, the reason and the flag. */
export function rethrowUnusable({ path, purpose, flag }: DirectoryUse): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (!error.syscall) throw error
    const file = error.path === undefined || error.path === path ? '' : ` (${error.path})`
    throw new Error(`Cannot use ${path} as ${purpose}: ${describe(error)}${file}. Choose another with ${flag}.`, {
      cause: error,
    })
  }
}

/** Returns a function for `catch` around reads and writes in the directory of keys and certificates. */
export const rethrowUnusablePki = (path: string): ((error: NodeJS.ErrnoException) => never) =>
  rethrowUnusable({ path, purpose: 'credentials directory', flag: '--pki-dir' })

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
  EEXIST: 'it is a file',
  ENOTDIR: 'a part of the path is a file',
  ENOENT: 'no directory can be created there',
  ENOSPC: 'the disk is full',
}

const describe = (error: NodeJS.ErrnoException): string => DESCRIPTIONS[error.code ?? ''] ?? error.message
