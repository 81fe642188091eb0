// Builds another commit of this repository in a separate directory, to compare its benchmarks with those of this build.
import { execFile } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 64 * 2 ** 20

export interface BuiltCommit {
  readonly hash: string
  readonly subject: string
  /** The program that runs its benchmarks. */
  readonly program: string
}

/** There is no commit with this name. */
export class UnknownCommitError extends Error {}

/** Extracts the commit into `dir`, which must be empty, installs its dependencies if they differ, and builds it. */
export async function buildCommit(commit: string, options: { root: string; dir: string }): Promise<BuiltCommit> {
  const { root, dir } = options
  const { hash, subject } = await describeCommit(commit, root)
  await run('sh', ['-c', 'git -C "$0" archive "$1" | tar -x -C "$2"', root, hash, dir], { maxBuffer: OUTPUT_BYTES_MAX })
  if (await hasSameDependencies(root, dir)) await symlink(join(root, 'node_modules'), join(dir, 'node_modules'))
  else await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir })
  await run('node', [join('scripts', 'build.mjs'), '--force'], { cwd: dir, maxBuffer: OUTPUT_BYTES_MAX })
  return { hash, subject, program: join(dir, 'dist', 'bench.js') }
}

async function describeCommit(commit: string, root: string): Promise<{ hash: string; subject: string }> {
  try {
    const { stdout } = await run('git', ['-C', root, 'log', '-1', '--format=%H %s', '--end-of-options', commit, '--'])
    const [hash = '', ...words] = stdout.trim().split(' ')
    return { hash, subject: words.join(' ') }
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    throw new UnknownCommitError(`--against ${commit}: there is no such commit. ${stderr.trim()}`, { cause: error })
  }
}

async function hasSameDependencies(root: string, dir: string): Promise<boolean> {
  const [own, other] = await Promise.all([root, dir].map((path) => readFile(join(path, 'package-lock.json'), 'utf8')))
  return own === other
}
