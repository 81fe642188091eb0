// Copies the credentials that several servers share from a read-only directory, such as a mounted Secret, into a server's pki
// directory, at the start and whenever they change. Each server issues its own certificates from the shared CA.
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import { watchFiles } from '../../base/watch-files.ts'
import { ENCRYPTION_FILE } from './encryption.ts'
import { rethrowUnusablePki } from './unusable-directory.ts'

/** Each server would create these files itself if they were missing. */
const REQUIRED_FILES = ['ca.key', 'ca.crt', 'tokens.json', 'service-account.key'] as const
const OPTIONAL_FILES = ['service-account.pub', 'revoked-certificates', ENCRYPTION_FILE] as const
const SHARED_FILES = [...REQUIRED_FILES, ...OPTIONAL_FILES]

interface PkiSourceOptions {
  /** Value of --pki-source. Undefined if the server has no source. */
  readonly pkiSource: string | undefined
  readonly pkiDir: string
  readonly clock: Clock
  readonly log: Logger
}

/** Copies the files that differ. Throws UsageError if a required file is missing. */
export async function copyPkiSource({ pkiSource, pkiDir, log }: PkiSourceOptions): Promise<void> {
  if (pkiSource === undefined) return
  const contents = await Promise.all(SHARED_FILES.map((file) => readSourceFile(pkiSource, file)))
  const missingFiles = REQUIRED_FILES.filter((_, index) => contents[index] === undefined)
  if (missingFiles.length > 0) {
    throw new UsageError(
      `--pki-source ${pkiSource} has no ${missingFiles.join(', ')}. Copy the pki directory of a server there: ` +
        'servers that share a store need the same credentials.',
    )
  }
  const onWritten = (file: string) => log.info({ file, source: pkiSource }, 'credentials copied')
  await writeChangedFiles(pkiDir, contents, onWritten).catch(rethrowUnusablePki(pkiDir))
}

async function readSourceFile(pkiSource: string, file: string): Promise<string | undefined> {
  const path = join(pkiSource, file)
  return readTextIfPresent(path).catch((error: Error) => {
    throw new UsageError(`--pki-source ${pkiSource}: ${path} cannot be read: ${error.message}`)
  })
}

/** Writes the contents of SHARED_FILES that differ. */
async function writeChangedFiles(
  pkiDir: string,
  contents: readonly (string | undefined)[],
  onWritten: (file: string) => void,
): Promise<void> {
  await ensurePrivateDirectory(pkiDir)
  for (const [index, file] of SHARED_FILES.entries()) {
    const content = contents[index]
    if (content === undefined || content === (await readTextIfPresent(join(pkiDir, file)))) continue
    await writePrivateFile(join(pkiDir, file), content)
    onWritten(file)
  }
}

/** Copies the files whenever they change, until the signal is aborted. */
export async function followPkiSource(options: PkiSourceOptions, signal: AbortSignal): Promise<void> {
  const { pkiSource, clock, log } = options
  if (pkiSource === undefined) return
  const stop = await watchFiles({
    paths: SHARED_FILES.map((file) => join(pkiSource, file)),
    clock,
    onChange: () =>
      copyPkiSource(options).catch((error: Error) =>
        log.error({ source: pkiSource, reason: error.message }, 'cannot copy the changed credentials'),
      ),
  })
  signal.addEventListener('abort', stop, { once: true })
}
