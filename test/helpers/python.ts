// Creates a Python environment with the packages of a requirements file, and reuses it in later runs. If CI is set, a
// failure to create it fails the tests that need it; otherwise they are skipped with the reason.
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type PythonEnvironment = { readonly is: 'ready'; readonly python: string } | { is: 'missing'; message: string }

const run = promisify(execFile)

export async function preparePython(requirementsFile: string): Promise<PythonEnvironment> {
  const dir = join(tmpdir(), 'stowage-test-venv')
  const python = join(dir, 'bin', 'python')
  const stamp = join(dir, 'stowage-requirements.txt')
  const requirements = await readFile(requirementsFile, 'utf8')
  try {
    if ((await readFile(stamp, 'utf8').catch(() => '')) !== requirements) {
      await run('python3', ['-m', 'venv', '--clear', dir])
      await run(python, ['-m', 'pip', 'install', '--quiet', '--requirement', requirementsFile])
      await writeFile(stamp, requirements)
    }
    return { is: 'ready', python }
  } catch (error) {
    if (process.env.CI) throw error
    return { is: 'missing', message: error instanceof Error ? error.message.split('\n', 1)[0]! : String(error) }
  }
}
