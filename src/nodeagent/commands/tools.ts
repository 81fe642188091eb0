// Finds the programs of the machine with which the agent starts commands. They are called by their absolute paths: with the PATH
// of a container, a pod could replace them with programs in its volumes.
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { MissingToolError } from '../../host/errors.ts'
import { searchPath } from '../../host/run.ts'

/** By search path and name. */
const foundPaths = new Map<string, string>()

/** Returns the absolute path of a program in the agent's own search path. Throws MissingToolError. */
export function findTool(name: string): string {
  const path = findProgram(name)
  if (path === undefined) throw new MissingToolError(name)
  return path
}

/** Returns undefined if the program is not installed. */
export function findProgram(name: string): string | undefined {
  const directories = searchPath()
  const key = `${directories} ${name}`
  const found =
    foundPaths.get(key) ??
    directories
      .split(':')
      .filter((directory) => directory.startsWith('/'))
      .map((directory) => join(directory, name))
      .find(isExecutable)
  if (found !== undefined) foundPaths.set(key, found)
  return found
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
