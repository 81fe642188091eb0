// Reads credentials from a directory with one file per key, such as a Secret mounted into a pod. Read them
// at every use, because the kubelet updates the files.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../base/usage-error.ts'

/** The size limit of a Secret. */
const SECRET_BYTES_MAX = 1024 * 1024

/** Returns the content of the files by name. Errors contain the path, never the content. */
export function readSecretDir(dir: string): Record<string, string> {
  const credentials: Record<string, string> = {}
  let bytes = 0
  for (const key of listNames(dir)) {
    const path = join(dir, key)
    const stats = statSync(path)
    if (key.startsWith('.') || !stats.isFile()) continue // the kubelet's symlinks and timestamped directories
    bytes += stats.size
    if (bytes > SECRET_BYTES_MAX) {
      throw new UsageError(`The files in ${dir} are larger than ${SECRET_BYTES_MAX} bytes, the limit for a Secret.`)
    }
    credentials[key] = readFileSync(path, 'utf8')
  }
  return credentials
}

function listNames(dir: string): string[] {
  try {
    return readdirSync(dir).sort()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      `Cannot read credentials from ${dir} (${code}): set --provisioner-secret-dir to a readable directory.`,
    )
  }
}
