// Finds the test files whose components run with their rules: those that call `clientOf` of the server fixture, or set its option
// `recordsRuleUse`, directly or in a fixture that they import.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the paths of the test files, relative to the root of the repository. */
export const suitesWithRules = (): string[] =>
  readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(ROOT, 'src', name))
    .filter((file) => usesRules(file))
    .map((file) => relative(ROOT, file))
    .sort()

/** Returns the components that a test file or its fixtures pass to `clientOf`. */
export function componentsOf(path: string): Set<string> {
  const calls = [...filesOf(join(ROOT, path))].flatMap((file) => [
    ...readFileSync(file, 'utf8').matchAll(/clientOf\(('[^)]*')\)/g),
  ])
  return new Set(calls.flatMap(([, components]) => components!.split(', ').map((quoted) => quoted.slice(1, -1))))
}

const usesRules = (file: string): boolean =>
  [...filesOf(file)].some((path) => /\.clientOf\(|recordsRuleUse/.test(readFileSync(path, 'utf8')))

/** Returns a test file and the fixtures that it imports, directly or through another fixture, except server.fixture.ts. */
function filesOf(file: string, files = new Set<string>()): Set<string> {
  if (files.has(file) || file.endsWith('/server.fixture.ts')) return files
  files.add(file)
  for (const [, path] of readFileSync(file, 'utf8').matchAll(/from '(\.[^']+\.fixture\.ts)'/g)) {
    filesOf(join(dirname(file), path!), files)
  }
  return files
}

/** Returns the name of the file with the usage of a test file in a vitest project. */
export const usageFile = (project: string, path: string): string => `${project} ${path.replaceAll('/', ' ')}.json`
