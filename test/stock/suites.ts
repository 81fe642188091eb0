// Finds the test files of the controllers, the scheduler, the node agent and their runtime that use the server fixture
// (src/apiserver/server.fixture.ts). The vitest project `stock` runs them a second time, on a server that responds like a stock
// API server.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDERS = ['src/controllers', 'src/scheduler', 'src/nodeagent', 'src/runtime']
const SERVER_FIXTURE = join(ROOT, 'src/apiserver/server.fixture.ts')

/** Returns the paths of the test files, relative to the root of the repository. */
export function stockSuites(): string[] {
  return FOLDERS.flatMap((folder) => testFiles(join(ROOT, folder)))
    .filter((file) => usesServerFixture(file))
    .map((file) => relative(ROOT, file))
}

const testFiles = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(dir, name))
    .sort()

/** Whether the file imports the server fixture, directly or through other fixtures and contracts. */
function usesServerFixture(file: string, visitedFiles = new Set<string>()): boolean {
  if (file === SERVER_FIXTURE) return true
  if (visitedFiles.has(file)) return false
  visitedFiles.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/from '(\.[^']+\.(?:fixture|contract)\.ts)'/g)
  return [...imports].some(([, path]) => usesServerFixture(join(dirname(file), path!), visitedFiles))
}
