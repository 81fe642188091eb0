// Browser sessions: the token in the printed URL opens a session, whose id is stored in an HttpOnly cookie. The token remains
// valid while the process runs, so that several browsers can open the URL.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { sessionRequired, wrongToken } from '../errors.ts'

const SESSION_MS = 12 * 60 * 60_000
/** Beyond this, opening a session ends the oldest one. */
const SESSIONS_MAX = 1_000
const SECRET_BYTES = 32

export interface Session {
  readonly id: string
  /** In monotonic time. */
  readonly expiresAtMs: number
  /** Aborted when the session ends. */
  readonly signal: AbortSignal
}

export interface Sessions {
  /** Throws 401 if the token is wrong. Returns the session and the cookie for it. */
  open(token: unknown): { readonly session: Session; readonly cookie: string; readonly expiresAt: string }
  /** Throws 401 if the request has no session. */
  require(incoming: IncomingMessage): Session
  /** Ends the session of the request, if it has one. Returns the cookie that removes it from the browser. */
  end(incoming: IncomingMessage): string
  endAll(): void
}

export interface SessionOptions {
  readonly clock: Clock
  readonly port: number
  /** The secret part of the printed URL. */
  readonly token: string
}

export function createSessions({ clock, port, token }: SessionOptions): Sessions {
  // Browsers send the cookies of a host to all its ports, so the name contains the port.
  const cookieName = `stowage-console-${port}`
  const sessions = new Map<string, Session & { stop(): void }>()

  const find = (incoming: IncomingMessage) => sessions.get(readCookie(incoming, cookieName) ?? '')
  const formatCookie = (value: string, seconds: number) =>
    `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`

  function endSession(id: string): void {
    sessions.get(id)?.stop()
    sessions.delete(id)
  }

  return {
    open(candidate) {
      if (typeof candidate !== 'string' || !isSame(candidate, token)) throw wrongToken()
      const [oldestId] = sessions.keys()
      if (sessions.size >= SESSIONS_MAX && oldestId !== undefined) endSession(oldestId)
      const id = newSecret()
      const controller = new AbortController()
      const cancelExpiry = clock.after(SESSION_MS, () => endSession(id))
      const stop = () => {
        cancelExpiry()
        controller.abort()
      }
      const session = { id, expiresAtMs: clock.monotonicMs() + SESSION_MS, signal: controller.signal, stop }
      sessions.set(id, session)
      const expiresAt = new Date(clock.nowMs() + SESSION_MS).toISOString()
      return { session, cookie: formatCookie(id, SESSION_MS / 1_000), expiresAt }
    },
    require(incoming) {
      const session = find(incoming)
      if (!session || clock.monotonicMs() >= session.expiresAtMs) throw sessionRequired()
      return session
    },
    end(incoming) {
      const session = find(incoming)
      if (session) endSession(session.id)
      return formatCookie('', 0)
    },
    endAll() {
      for (const id of [...sessions.keys()]) endSession(id)
    },
  }
}

const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

/** Compares hashes, so that the duration of the comparison reveals neither the content nor the length. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(hashOf(a), hashOf(b))

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest()

function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}
