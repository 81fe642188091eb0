// Credentials in a directory, as a Secret is mounted into a pod: one file per key. Read for every use, because the kubelet
// updates the files in place.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../base/usage-error.ts'

/** The size limit of a Secret. */
const SECRET_BYTES_MAX = 1024 * 1024

/** Throws an error that names the directory or file, never its content. */
export function readSecretDir(dir: string): Record<string, string> {
  const credentials: Record<string, string> = {}
  let bytes = 0
  for (const key of namesIn(dir)) {
    const path = join(dir, key)
    const found = statSync(path)
    if (key.startsWith('.') || !found.isFile()) continue // links and directories of the kubelet
    bytes += found.size
    if (bytes > SECRET_BYTES_MAX) {
      throw new UsageError(
        `The files in ${dir} are larger than ${SECRET_BYTES_MAX} bytes: is it a directory of credentials?`,
      )
    }
    credentials[key] = readFileSync(path, 'utf8')
  }
  return credentials
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir).sort()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      `Cannot read credentials from ${dir} (${code}): give --provisioner-secret-dir a readable directory.`,
    )
  }
}
