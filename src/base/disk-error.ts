// Describes errors of the file system.

export function describeDiskError(verb: string, path: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return `Cannot ${verb} ${path}: ${DESCRIPTIONS[errorCode(error)] ?? message}`
}

export const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? ''

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied. Give the user that runs this process access to it.',
  EPERM: 'not permitted. Give the user that runs this process access to it.',
  EROFS: 'the file system is read-only. Mount it for writing.',
  ENOSPC: 'the disk is full. Free some space, or use another disk.',
  EDQUOT: 'the quota of this user is used up. Raise it, or free some space.',
  EEXIST: 'it already exists.',
  ENOTDIR: 'a part of the path is not a directory.',
  ELOOP: 'a part of the path is a link.',
  ENOENT: 'it does not exist.',
  EBUSY: 'it is in use, perhaps as a mount point. Unmount it.',
  EXDEV: 'another file system is mounted inside. Unmount it.',
  EMFILE: 'too many files are open in this process. Raise its limit of open files (ulimit -n).',
  EIO: 'the disk failed. Check the system log.',
}
