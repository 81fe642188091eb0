// Errors of the host package that callers distinguish.

/** The program is not installed. The message names the package to install. */
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

/** The program failed. `code` is undefined if it did not start, was killed or did not exit in time. */
export class ProgramFailedError extends Error {
  override readonly name = 'ProgramFailedError'
  readonly program: string
  readonly code: number | undefined
  readonly stderr: string

  constructor(command: readonly [string, ...string[]], outcome: { code?: number; stderr: string; reason: string }) {
    super(`"${command.join(' ')}" ${outcome.reason}${outcome.stderr ? `: ${toSingleLine(outcome.stderr)}` : ''}`)
    this.program = command[0]
    this.code = outcome.code
    this.stderr = outcome.stderr
  }
}

/** The pool does not have enough space. */
export class NoSpaceError extends Error {
  override readonly name = 'NoSpaceError'
}

/** The file system or a limit of the process does not allow a file of this size. */
export class FileTooLargeError extends Error {
  override readonly name = 'FileTooLargeError'
}

/** Something else is mounted at the target, or the same source is mounted there with another access mode. */
export class OccupiedError extends Error {
  override readonly name = 'OccupiedError'
}

/** Another program has frozen the file system and must thaw it. */
export class FrozenError extends Error {
  override readonly name = 'FrozenError'
}

/** Formatting was refused, because the device is not blank. */
export class NotBlankError extends Error {
  override readonly name = 'NotBlankError'
}

/** Returns whether the program failed with a matching message on stderr. */
export const stderrMatches = (error: unknown, pattern: RegExp): boolean =>
  error instanceof ProgramFailedError && pattern.test(error.stderr)

/** The package names of Debian. */
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

const STDERR_LENGTH_MAX = 1_000 // longer output is truncated, because the message becomes an event

const toSingleLine = (text: string) =>
  text
    .trim()
    .replace(/\s*\n\s*/g, '; ')
    .slice(0, STDERR_LENGTH_MAX)
