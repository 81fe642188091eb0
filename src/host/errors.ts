// Every way this machine says no that a caller can tell apart. Messages say what, which, why and what next; none of
// them holds more than a program's own complaint.

/** The program is not installed; the message names the package that brings it. */
export class MissingToolError extends Error {
  override readonly name = 'MissingToolError'
  readonly program: string

  constructor(program: string) {
    super(
      `The program "${program}" is not installed on this node. Install the package "${PACKAGES[program] ?? program}".`,
    )
    this.program = program
  }
}

/** The program ran and ended with a code that means failure, or did not end in time (then `code` is undefined). */
export class ProgramFailedError extends Error {
  override readonly name = 'ProgramFailedError'
  readonly program: string
  readonly code: number | undefined
  readonly stderr: string

  constructor(command: readonly [string, ...string[]], outcome: { code?: number; stderr: string; how: string }) {
    super(`"${command.join(' ')}" ${outcome.how}${outcome.stderr ? `: ${oneLine(outcome.stderr)}` : ''}`)
    this.program = command[0]
    this.code = outcome.code
    this.stderr = outcome.stderr
  }
}

/** The pool has not enough room for what was asked. */
export class NoSpaceError extends Error {
  override readonly name = 'NoSpaceError'
}

/** Something else is mounted where a mount of ours was to be. */
export class OccupiedError extends Error {
  override readonly name = 'OccupiedError'
}

/** Someone else has frozen the file system, and will want to thaw it themselves. */
export class FrozenError extends Error {
  override readonly name = 'FrozenError'
}

/** The device holds something, so no file system is made on it. */
export class NotBlankError extends Error {
  override readonly name = 'NotBlankError'
}

/** Debian's names; other distributions mostly use the same. */
const PACKAGES: Readonly<Record<string, string>> = {
  'mkfs.xfs': 'xfsprogs',
  xfs_growfs: 'xfsprogs',
  xfs_admin: 'xfsprogs',
  'mkfs.ext4': 'e2fsprogs',
  resize2fs: 'e2fsprogs',
  e2fsck: 'e2fsprogs',
  blkid: 'util-linux',
  fallocate: 'util-linux',
  blockdev: 'util-linux',
  fsfreeze: 'util-linux',
  losetup: 'mount',
  mount: 'mount',
  umount: 'mount',
  cp: 'coreutils',
}

const COMPLAINT_LENGTH_MAX = 1_000 // the beginning says why; the rest of a long one is only noise in an event

const oneLine = (text: string) =>
  text
    .trim()
    .replace(/\s*\n\s*/g, '; ')
    .slice(0, COMPLAINT_LENGTH_MAX)
