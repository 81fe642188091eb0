// Reads the data that the console's server computes: facts about the server, causes, usage, history, bulk runs, findings and the
// permissions of the user.
import { signal } from '@preact/signals'
import type {
  AccessCheck,
  AccessResponse,
  BulkResponse,
  ConsoleInfo,
  DfResponse,
  DoctorResponse,
  HistoryResponse,
  WhyLines,
} from '../../protocol.ts'
import { request } from './api.ts'
import { Polled } from './polled.ts'

export const info = new Polled<ConsoleInfo>('/data/info', 30_000)
export const whyLines = new Polled<WhyLines>('/data/why-lines', 5_000)
export const usageByClaim = new Polled<Extract<DfResponse, { by: 'claim' }>>('/data/df', 10_000)
export const history = new Polled<HistoryResponse>('/data/history', 10_000)
export const bulk = new Polled<BulkResponse>('/data/bulk', 2_000)
export const findings = new Polled<DoctorResponse>('/data/doctor', 60_000)

const accessCache = signal<ReadonlyMap<string, boolean>>(new Map())
const requestedChecks = new Set<string>()

/** Returns whether the user has the permission, or undefined until the server has responded. */
export function isAllowed(check: AccessCheck): boolean | undefined {
  const key = JSON.stringify(check)
  const known = accessCache.value.get(key)
  if (known === undefined && !requestedChecks.has(key)) {
    requestedChecks.add(key)
    queueMicrotask(sendChecks)
  }
  return known
}

/** Sends the checks of one render together, up to the limit of a request. Permissions are read again after a minute. */
async function sendChecks(): Promise<void> {
  const unsent = [...requestedChecks].filter((key) => !sentChecks.has(key))
  const keys = unsent.slice(0, CHECKS_MAX)
  if (keys.length === 0) return
  for (const key of keys) sentChecks.add(key)
  if (unsent.length > CHECKS_MAX) queueMicrotask(sendChecks)
  try {
    const { allowed } = await request<AccessResponse>('/data/access', {
      method: 'POST',
      body: { checks: keys.map((key) => JSON.parse(key) as AccessCheck) },
    })
    const next = new Map(accessCache.value)
    for (const [index, key] of keys.entries()) next.set(key, allowed[index] ?? false)
    while (next.size > CACHED_CHECKS_MAX) next.delete(next.keys().next().value!)
    accessCache.value = next
  } catch {
    // The actions stay disabled until the checks are sent again.
  }
  setTimeout(() => forget(keys), RECHECK_DELAY_MS)
}

const sentChecks = new Set<string>()
const CHECKS_MAX = 100
const CACHED_CHECKS_MAX = 1_000
const RECHECK_DELAY_MS = 60_000

/** The last result remains until the next one arrives. */
function forget(keys: readonly string[]): void {
  for (const key of keys) {
    requestedChecks.delete(key)
    sentChecks.delete(key)
  }
}
