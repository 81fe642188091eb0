// Runs an agent's stream server: waits for its serving certificate, listens, reports the port for the Node, and renews the
// certificate before it expires.
import { X509Certificate } from 'node:crypto'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { KeyAndCertificate } from '../join/request-certificate.ts'
import { type StreamServer, type StreamServerOptions, startStreamServer } from './stream-server.ts'

export interface StreamOptions {
  /** The address to listen on. Default: the machine's address. */
  readonly host?: string
  /** Default: 0, any free port. */
  readonly port?: number
  /** The CA, in PEM, that has issued the client certificate of the API server. */
  readonly ca: string
  /** Returns the serving certificate of the agent. May wait for an approval. */
  issueCertificate(signal: AbortSignal): Promise<KeyAndCertificate>
}

export interface ServeStreamsDeps extends Pick<StreamServerOptions, 'containers' | 'findPod'> {
  readonly host: string
  readonly options: StreamOptions
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  onListening(port: number): void
}

/** A certificate is renewed at a random time in this part of its lifetime, so that nodes do not all renew at the same time. */
const RENEWAL_START = 0.7
const RENEWAL_SPREAD = 0.2
const RETRY_DELAY_MS = 10_000
/** Maximum duration of one sleep, after which the clock is read again. */
const SLEEP_MS_MAX = 24 * 60 * 60 * 1_000

/** Resolves after the signal is aborted and all sessions have ended. */
export async function serveStreams(deps: ServeStreamsDeps, signal: AbortSignal): Promise<void> {
  const { options, clock, random, log } = deps
  let server: StreamServer | undefined
  try {
    while (!signal.aborted) {
      try {
        const { cert, key } = await options.issueCertificate(signal)
        const tls = { cert, key, ca: options.ca }
        if (server) server.setTls(tls)
        else {
          server = await startStreamServer({ ...deps, host: options.host ?? deps.host, port: options.port ?? 0, tls })
          deps.onListening(server.port)
        }
        await sleepUntil(renewalTimeMs(cert, random), clock, signal)
      } catch (error) {
        if (signal.aborted) break
        log.warn({ reason: (error as Error).message }, 'cannot serve logs and commands of containers; retrying')
        await clock.sleep(RETRY_DELAY_MS, signal).catch(() => {})
      }
    }
  } finally {
    await server?.stop()
  }
}

function renewalTimeMs(cert: string, random: Random): number {
  const { validFrom, validTo } = new X509Certificate(cert)
  const startMs = Date.parse(validFrom)
  return startMs + (Date.parse(validTo) - startMs) * (RENEWAL_START + RENEWAL_SPREAD * random())
}

async function sleepUntil(timeMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  while (clock.nowMs() < timeMs) await clock.sleep(Math.min(timeMs - clock.nowMs(), SLEEP_MS_MAX), signal)
}
