// Manages encryption at rest in a server: loads or creates the configuration, reloads it when the file changes, and rewrites
// values that are not encrypted with the current key.
import { randomBytes } from 'node:crypto'
import { access, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createEncryption,
  type Encryption,
  findUndecryptable,
  formatSecretsConfiguration,
  generateKey,
  parseEncryptionConfiguration,
  rewriteStaleValues,
} from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import { createPrivateFile, ensurePrivateDirectory, restrictFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import { watchFiles } from '../../base/watch-files.ts'
import { STORE_FILE, type Store } from '../../store/index.ts'

/** The configuration file that a server creates in its credentials directory. */
export const ENCRYPTION_FILE = 'encryption.yaml'

export interface LoadEncryptionOptions {
  /** Value of --encryption-provider-config. Default: encryption.yaml in pkiDir. */
  readonly configFile: string | undefined
  readonly pkiDir: string
  /** Directory of an embedded store; undefined for etcd. */
  readonly storeDir: string | undefined
  readonly log: Logger
}

export interface LoadedEncryption {
  readonly encryption: Encryption
  /** Undefined if there is no configuration. */
  readonly file: string | undefined
}

/** Loads the configuration before the store is opened. For a new store, creates one that encrypts Secrets. */
export async function loadEncryption(options: LoadEncryptionOptions): Promise<LoadedEncryption> {
  const { configFile, pkiDir, log } = options
  const encryption = createEncryption()
  if (configFile !== undefined) {
    await checkOthersCannotRead(configFile)
    encryption.setRules(await readRules(configFile, '--encryption-provider-config '))
    return { encryption, file: configFile }
  }
  const file = join(pkiDir, ENCRYPTION_FILE)
  if (!(await exists(file))) {
    if (!(await isNewStore(options))) return { encryption, file: undefined }
    await ensurePrivateDirectory(pkiDir)
    // Another server that starts with the same directory may create the file first: both then use its keys.
    const isCreated = await createPrivateFile(file, await formatSecretsConfiguration([generateKey(newKeyName())]))
    if (isCreated) log.info({ file: ENCRYPTION_FILE, reason: 'it did not exist' }, 'credentials written')
  }
  await restrictFile(file)
  encryption.setRules(await readRules(file))
  return { encryption, file }
}

/** Returns a random name. Names must be unique, because each value refers to its key by name. */
export const newKeyName = (): string => `key-${randomBytes(4).toString('hex')}`

/**
 * An embedded store is new if its file does not exist. Servers on etcd share their credentials, so an etcd store is new if there
 * is no CA yet.
 */
const isNewStore = async ({ storeDir, pkiDir }: LoadEncryptionOptions): Promise<boolean> =>
  !(await exists(storeDir === undefined ? join(pkiDir, 'ca.crt') : join(storeDir, STORE_FILE)))

/** Throws if a value in the store cannot be decrypted: serving the others would hide the loss of a key. */
export async function checkStoredValues(store: Store, { encryption, file }: LoadedEncryption): Promise<void> {
  const decryptionError = await findUndecryptable(store, { current: encryption })
  if (!decryptionError) return
  const location = file ?? `${ENCRYPTION_FILE} in the credentials directory`
  throw new Error(`Cannot use the store: ${decryptionError.message}. Restore ${location} from the copy of the keys.`)
}

export interface FollowEncryptionOptions extends LoadedEncryption {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Reloads a changed configuration until the signal is aborted. Rewrites stale values at the start and after each change. */
export async function followEncryption(options: FollowEncryptionOptions): Promise<void> {
  const { encryption, file, store, clock, log, signal } = options
  if (file === undefined) return

  async function rewrite(): Promise<void> {
    const onError = (error: Error) => log.error({ reason: error.message }, 'a value in the store cannot be decrypted')
    const values = await rewriteStaleValues(store, encryption, onError)
    if (values > 0) log.info({ values }, 'rewrote stored values with the current encryption key')
  }

  async function reload(path: string): Promise<void> {
    const rules = await readRules(path)
    const decryptionError = await findUndecryptable(store, { current: encryption, candidate: createEncryption(rules) })
    if (decryptionError) throw decryptionError
    encryption.setRules(rules)
    log.info({ file: path }, 'encryption configuration reloaded')
    await rewrite()
  }

  const stop = await watchFiles({
    paths: [file],
    clock,
    onChange: () =>
      reload(file).catch((error: Error) => {
        if (signal.aborted) return
        log.error({ file, reason: error.message }, 'cannot use the new encryption configuration; keeping the old one')
      }),
  })
  signal.addEventListener('abort', stop, { once: true })
  await rewrite().catch((error: Error) => {
    if (!signal.aborted)
      log.error({ reason: error.message }, 'cannot rewrite stored values; retrying at the next start')
  })
}

async function readRules(file: string, flag = '') {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new UsageError(`${flag}${file} cannot be read: ${error.message}`)
  })
  return parseEncryptionConfiguration(text).catch((error: Error) => {
    throw new UsageError(`${flag}${file}: ${error.message}`)
  })
}

const OTHERS_MODE_BITS = 0o007

async function checkOthersCannotRead(file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined)
  if (!stats || (stats.mode & OTHERS_MODE_BITS) === 0) return
  throw new UsageError(
    `--encryption-provider-config ${file}: all users of the machine can access the keys. Restrict it: chmod 600 ${file}`,
  )
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
