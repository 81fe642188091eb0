// Copies a directory tree while other programs may change it. Root must not copy by path: a program could replace a
// directory with a link to files that only root may read. Root copies with GNU tar, which reads each directory relative to
// its open parent and follows no links.
import { NoSpaceError, ProgramFailedError } from './errors.ts'
import type { Run } from './run.ts'

const COPY_TIMEOUT_MS = 24 * 60 * 60_000

// The status of the first tar is 1 if a file changed while it was read.
const TAR_SCRIPT = `
status=$(
  {
    { tar --directory "$1" --create --file - --acls --xattrs --sparse . 3>&-; echo $? >&3; } |
      tar --directory "$2" --extract --file - --acls --xattrs --xattrs-include='*' --same-owner --same-permissions \\
        --numeric-owner --delay-directory-restore >&2 3>&-
  } 3>&1
) || exit 2
[ "$status" -le 1 ]
`

export interface CopyTreeDeps {
  readonly run: Run
  /** Default: whether this process runs as root. Other users copy with cp, which shares blocks where the file system can. */
  readonly isRoot?: boolean
}

/** Copies the content of one directory to another, which must be empty. Throws NoSpaceError if the disk is full. */
export async function copyTree(
  sourceDir: string,
  targetDir: string,
  { run, isRoot = process.getuid?.() === 0 }: CopyTreeDeps,
): Promise<void> {
  const command = isRoot
    ? ['sh', '-c', TAR_SCRIPT, 'sh', sourceDir, targetDir]
    : ['cp', '--archive', '--reflink=auto', '--', `${sourceDir}/.`, targetDir]
  const [program = '', ...programArguments] = command
  try {
    await run(program, programArguments, { timeoutMs: COPY_TIMEOUT_MS })
  } catch (error) {
    if (!(error instanceof ProgramFailedError) || !/no space left/i.test(error.stderr)) throw error
    throw new NoSpaceError(
      `Cannot copy ${sourceDir}: the pool is full. Delete volumes or snapshots, or give it more space.`,
    )
  }
}
