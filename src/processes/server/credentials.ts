// Loads or creates a server's credentials, and keeps them current while it runs: reloads tokens, certificates and revocations
// when their files change, ends watches and other streams whose credentials are no longer valid, and renews certificates before
// they expire.
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type ApiServer,
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  createStaticTokens,
  type HttpsListener,
  loadOrCreatePki,
  NO_REVOCATIONS,
  type Pki,
  parseRevocations,
  parseTokens,
  type ReloadableAuthenticator,
  type StaticTokens,
} from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import { readTextIfPresent } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { watchFiles } from '../../base/watch-files.ts'

/** The file of revoked client certificates, which an administrator creates. */
const REVOCATIONS_FILE = 'revoked-certificates'
const RENEWAL_CHECK_MS = 12 * 60 * 60 * 1_000

/** What `follow` updates, and when it stops. */
export interface FollowOptions {
  readonly listener: Pick<HttpsListener, 'setCertificates'>
  readonly server: Pick<ApiServer, 'endUnauthenticatedStreams'>
  /** Called after certificates have been renewed. */
  onRenewed(pki: Pki): Promise<void>
  readonly signal: AbortSignal
}

export interface ServerCredentials {
  readonly pki: Pki
  /** Creates an authenticator for client certificates, then tokens in tokens.json, then tokens of the other authenticators. */
  createAuthenticator(
    options: Pick<AuthenticatorOptions, 'tokenAuthenticators' | 'apiAudiences'>,
  ): Promise<Authenticator>
  /** Reloads changed files and renews certificates until the signal is aborted. Resolves when the files are being watched. */
  follow(options: FollowOptions): Promise<void>
}

export interface OpenCredentialsOptions {
  /** The pki directory. */
  readonly dir: string
  /** Host names and addresses in the serving certificate. */
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly log: Logger
}

/** Loads a server's credentials, and creates or renews them where necessary. */
export async function openCredentials({ dir, hosts, clock, log }: OpenCredentialsOptions): Promise<ServerCredentials> {
  const load = async (): Promise<Pki> => {
    const loadedPki = await loadOrCreatePki({ dir, hosts, clock })
    for (const { file, reason } of loadedPki.writtenFiles) log.info({ file, reason }, 'credentials written')
    return loadedPki
  }
  const pki = await load()
  const tokens = createStaticTokens(pki.tokens)
  let authenticator: ReloadableAuthenticator | undefined
  return {
    pki,
    async createAuthenticator({ tokenAuthenticators, apiAudiences }) {
      const { caCert } = pki
      authenticator = createAuthenticator({
        caCert,
        tokenAuthenticators: [tokens.authenticator, ...tokenAuthenticators],
        ...(apiAudiences ? { apiAudiences } : {}),
        clock,
      })
      await loadRevocations(dir, authenticator)
      return authenticator
    },
    async follow(options) {
      if (!authenticator) throw new Error('follow() needs an authenticator')
      await watchCredentials({ ...options, dir, pki, tokens, authenticator, clock, log })
      const renew = async () => {
        const renewedPki = await load()
        if (renewedPki.writtenFiles.length > 0) await options.onRenewed(renewedPki)
      }
      scheduleRenewal({ renew, clock, log, signal: options.signal })
    },
  }
}

/** Loads the revocations; the file may be missing. Throws an error that names an invalid line. */
async function loadRevocations(dir: string, authenticator: ReloadableAuthenticator): Promise<void> {
  const path = join(dir, REVOCATIONS_FILE)
  const text = await readTextIfPresent(path)
  try {
    authenticator.setRevocations(text === undefined ? NO_REVOCATIONS : parseRevocations(text))
  } catch (error) {
    throw new Error(`Cannot use ${path}: ${(error as Error).message}. Correct the file.`)
  }
}

interface WatchCredentialsOptions extends Omit<FollowOptions, 'onRenewed'> {
  readonly dir: string
  readonly pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'>
  readonly tokens: StaticTokens
  readonly authenticator: ReloadableAuthenticator
  readonly clock: Clock
  readonly log: Logger
}

async function watchCredentials(options: WatchCredentialsOptions): Promise<void> {
  const { dir, authenticator, tokens, listener, server, clock, log, signal } = options
  let servedPki = options.pki
  const path = (file: string) => join(dir, file)
  const readText = (file: string) => readFile(path(file), 'utf8')

  /** Applies changed files. If a file is invalid, logs it and keeps the previous credentials. */
  const watch = async (files: readonly string[], apply: () => Promise<void>) => {
    const onChange = async () => {
      try {
        await apply()
        const endedStreamCount = server.endUnauthenticatedStreams()
        log.info({ files, ...(endedStreamCount > 0 ? { endedStreams: endedStreamCount } : {}) }, 'credentials reloaded')
      } catch (error) {
        log.error(
          { files, reason: (error as Error).message },
          'cannot use the changed credentials; keeping the previous ones',
        )
      }
    }
    const stop = await watchFiles({ paths: files.map(path), clock, onChange })
    signal.addEventListener('abort', stop, { once: true })
  }

  await watch([REVOCATIONS_FILE], () => loadRevocations(dir, authenticator))
  await watch(['tokens.json'], async () => tokens.set(parseTokens(await readText('tokens.json'), path('tokens.json'))))
  await watch(['ca.crt'], async () => {
    const caCert = await readText('ca.crt')
    authenticator.setCaCert(caCert)
    servedPki = { ...servedPki, caCert }
    listener.setCertificates(servedPki)
  })
  await watch(['serving.crt', 'serving.key'], async () => {
    const [servingCert, servingKey] = [await readText('serving.crt'), await readText('serving.key')]
    new X509Certificate(servingCert) // throws a precise error
    const changedPki = { ...servedPki, servingCert, servingKey }
    listener.setCertificates(changedPki)
    servedPki = changedPki
  })
}

interface RenewalOptions {
  /** Renews certificates that expire soon; the watch then reloads the changed files. */
  readonly renew: () => Promise<void>
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

function scheduleRenewal({ renew, clock, log, signal }: RenewalOptions): void {
  let cancelTimer = () => {}
  const schedule = () => {
    cancelTimer = clock.after(RENEWAL_CHECK_MS, () => void run())
  }
  const run = async () => {
    await renew().catch((error: Error) => log.error({ reason: error.message }, 'cannot renew the certificates'))
    if (!signal.aborted) schedule()
  }
  schedule()
  signal.addEventListener('abort', () => cancelTimer(), { once: true })
}
