// Rejects requests that do not come from the console's own page: another Host (DNS rebinding), another Origin (CSRF), and bodies
// in a format that an HTML form can send. session.ts authenticates the browser.
import type { IncomingMessage } from 'node:http'
import { unsupportedBodyType, wrongHost, wrongOrigin } from '../errors.ts'

const HOSTS = ['127.0.0.1', 'localhost', '[::1]'] as const
const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])
/** `none` is a request that the user initiated, such as an address typed into the browser. */
const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none'])
/** Forms can send only other types. */
const BODY_TYPE = /^application\/(json|yaml|[\w-]+-patch\+(json|yaml))\s*(;|$)/i

/** Throws unless the Host is a name of the loopback address with the console's port. */
export function checkHost({ headers }: IncomingMessage, port: number): void {
  const allowed = HOSTS.map((host) => `${host}:${port}`)
  if (!allowed.includes(headers.host ?? '')) throw wrongHost(headers.host, allowed)
}

/**
 * Throws if another page sent the request. Browsers send no Origin header with same-origin reads, so these are
 * recognized by Sec-Fetch-Site; writes and upgrades require an Origin header.
 */
export function checkOrigin({ headers, method = 'GET' }: IncomingMessage, { isUpgrade = false } = {}): void {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  const needsOrigin = isUpgrade || !READ_METHODS.has(method)
  if (typeof site === 'string' && !OWN_SITES.has(site)) throw wrongOrigin(origin ?? `a ${site} page`)
  if (origin === undefined ? needsOrigin : origin !== `http://${host}`) throw wrongOrigin(origin)
}

/** Throws if the request has a body that a form on another site could send. */
export function checkBodyType({ headers }: IncomingMessage): void {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody && !BODY_TYPE.test(headers['content-type'] ?? '')) throw unsupportedBodyType(headers['content-type'])
}
