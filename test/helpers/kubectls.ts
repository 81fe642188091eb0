// Finds kubectl programs, one of each version: on PATH, numbered ones in the same directories (kubectl.1.27, …), and at the
// paths in STOWAGE_KUBECTLS, separated by colons or commas.
import { execFile } from 'node:child_process'
import { access, constants, readdir, realpath } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

export interface KubectlProgram {
  readonly path: string
  /** For example `v1.33.1`. */
  readonly version: string
  /** For example 33 for version 1.33. */
  readonly minor: number
}

export async function findKubectls(env: NodeJS.ProcessEnv = process.env): Promise<readonly KubectlProgram[]> {
  const configuredPaths = (env.STOWAGE_KUBECTLS ?? '').split(/[,:]/).filter((path) => path !== '')
  const directories = (env.PATH ?? '').split(delimiter).filter((path) => path !== '')
  const pathsOnPath = (await Promise.all(directories.map(findKubectlsIn))).flat()
  const realPaths = await Promise.all([...configuredPaths, ...pathsOnPath].map((path) => realpath(path)))
  const siblings = (await Promise.all(realPaths.map((path) => findKubectlsIn(dirname(path))))).flat()
  const programs = await Promise.all([...new Set([...realPaths, ...siblings])].map(readProgram))
  return uniqueVersions(programs.filter((program) => program !== undefined)).sort((a, b) => a.minor - b.minor)
}

async function findKubectlsIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => [])
  const paths = names.filter((name) => /^kubectl(\.1\.\d+)?$/.test(name)).map((name) => join(directory, name))
  const isExecutable = await Promise.all(
    paths.map((path) =>
      access(path, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  )
  return paths.filter((_, index) => isExecutable[index])
}

async function readProgram(path: string): Promise<KubectlProgram | undefined> {
  try {
    const { stdout } = await promisify(execFile)(path, ['version', '--client', '-o', 'json'])
    const { gitVersion: version } = JSON.parse(stdout).clientVersion as { gitVersion: string }
    return { path, version, minor: Number(/^v1\.(\d+)\./.exec(version)![1]) }
  } catch {
    return undefined // another program with this name
  }
}

/** Keeps one program of each version. Omits dispatchers, which only start another kubectl, unless there is nothing else. */
function uniqueVersions(programs: readonly KubectlProgram[]): KubectlProgram[] {
  const byVersion = new Map<string, KubectlProgram>()
  for (const program of programs) if (!byVersion.has(program.version)) byVersion.set(program.version, program)
  const realPrograms = [...byVersion.values()].filter(({ version }) => !version.endsWith('-dispatcher'))
  return realPrograms.length > 0 ? realPrograms : [...byVersion.values()]
}
