// The routes under /data, whose responses the console computes with the user's credentials. protocol.ts defines the messages.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError, badRequest, methodNotAllowed, noSuchPath } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Transport } from '../../client/http/transport.ts'
import type { Client } from '../../client/index.ts'
import { readJsonObject } from '../http/body.ts'
import { sendJson } from '../http/respond.ts'
import type { BulkRequest, DfGrouping, Problem, RetryRequest, SimulateRequest } from '../protocol.ts'
import { createAccess } from './access.ts'
import { createCached } from './cached.ts'
import type { History } from './history.ts'
import { type InfoOptions, readInfo } from './info.ts'
import type { Insight, InsightTarget } from './insight.ts'
import { readWhyLines } from './why-lines.ts'

export interface DataOptions extends InfoOptions {
  readonly client: Client
  readonly transport: Transport
  readonly clock: Clock
  readonly insight: Insight
  readonly history: History
  /** Aborted when the console stops. */
  readonly signal: AbortSignal
}

interface Request {
  readonly query: URLSearchParams
  /** The JSON object of a POST. */
  readonly body: Readonly<Record<string, unknown>>
  /** Aborted when the browser closes the connection. */
  readonly signal: AbortSignal
}

type Handler = (request: Request) => Promise<object>

const WHY_KINDS: readonly string[] = ['pvc', 'pod', 'pv', 'node']
const TIMELINE_KINDS: readonly string[] = ['pvc', 'pv']
const GROUPINGS: readonly string[] = ['claim', 'class', 'node', 'pool', 'namespace']

/** Returns a function that handles requests to paths below /data/. */
export function createDataRoutes(options: DataOptions) {
  const { client, clock, insight, history, signal: stopSignal } = options
  const { bulk } = insight
  const checkAccess = createAccess({ client, clock })
  // Tabs share these responses, so computing one is aborted only when the console stops, not when a tab closes.
  const readCachedInfo = createCached({ clock, cachedMsMin: 5_000, cachedMsMax: 5_000 }, () => readInfo(options))
  const readCachedWhyLines = createCached({ clock, cachedMsMin: 2_000, cachedMsMax: 30_000 }, () =>
    readWhyLines(client, clock, stopSignal),
  )
  const readCachedSpace = createCached({ clock, cachedMsMin: 2_000, cachedMsMax: 30_000 }, (by) =>
    insight.readSpace(by as 'claim' | DfGrouping, stopSignal),
  )
  const readCachedFindings = createCached({ clock, cachedMsMin: 5_000, cachedMsMax: 30_000 }, (driver) =>
    insight.examine(driver || undefined, stopSignal),
  )

  const readCachedLeaks = createCached({ clock, cachedMsMin: 30_000, cachedMsMax: 120_000 }, (driver) =>
    insight.findLeaks(driver, stopSignal).catch(toProblem),
  )

  const handlers: Readonly<Record<string, Handler>> = {
    'GET info': () => readCachedInfo(),
    'GET why': ({ query, signal }) => insight.diagnose(parseTarget(query, WHY_KINDS), signal).catch(toProblem),
    'GET why-lines': () => readCachedWhyLines(),
    'GET timeline': ({ query, signal }) =>
      insight.readTimeline(parseTarget(query, TIMELINE_KINDS), signal).catch(toProblem),
    'GET df': ({ query }) => readCachedSpace(parseGrouping(query)),
    'GET doctor': ({ query }) => readCachedFindings(query.get('driver') ?? ''),
    'GET leaks': ({ query }) => readCachedLeaks(parseDriver(query)),
    'GET history': async () => history.read(),
    'POST simulate': ({ body, signal }) => insight.simulate(body as unknown as SimulateRequest, signal),
    'POST access': ({ body }) => checkAccess(body.checks),
    'POST retry': ({ body, signal }) => insight.retry(parseRetryRequest(body), signal),
    'GET bulk': ({ signal }) => bulk.list(signal),
    'POST bulk/preview': ({ body, signal }) => bulk.preview(body as unknown as BulkRequest, signal),
    'POST bulk/start': async ({ body }) => bulk.start(body as unknown as BulkRequest),
    'POST bulk/pause': async ({ body }) => bulk.pause(parseText(body, 'id')),
    'POST bulk/resume': async ({ body }) => bulk.resume(parseText(body, 'id')),
    'POST bulk/undo': async ({ body }) => bulk.undo(parseText(body, 'id')),
  }

  return async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams: query } = new URL(incoming.url ?? '/', 'http://console')
    const route = pathname.slice('/data/'.length)
    const method = incoming.method ?? 'GET'
    const handler = Object.hasOwn(handlers, `${method} ${route}`) ? handlers[`${method} ${route}`] : undefined
    if (!handler) {
      const isKnown = ['GET', 'POST'].some((other) => Object.hasOwn(handlers, `${other} ${route}`))
      throw isKnown ? methodNotAllowed() : noSuchPath()
    }
    const controller = new AbortController()
    response.once('close', () => controller.abort())
    const body = method === 'POST' ? await readJsonObject(incoming) : {}
    sendJson(response, await handler({ query, body, signal: AbortSignal.any([controller.signal, stopSignal]) }))
  }
}

function parseTarget(query: URLSearchParams, kinds: readonly string[]): InsightTarget {
  const [kind, name] = [query.get('kind'), query.get('name')]
  if (!kind || !name) throw badRequest('expected the parameters kind and name')
  if (!kinds.includes(kind)) throw badRequest(`kind must be one of ${kinds.join(', ')}`)
  const [namespace, uid] = [query.get('namespace'), query.get('uid')]
  return { kind, name, ...(namespace ? { namespace } : {}), ...(uid ? { uid } : {}) }
}

/**
 * Converts an error with a message for the user to a response. The request is valid: another user may have deleted the object since the
 * page was drawn, and a driver may have no socket on this machine.
 */
function toProblem(error: unknown): Problem {
  if (!(error instanceof ApiError) || error.code !== 400) throw error
  return { problem: error.message }
}

function parseDriver(query: URLSearchParams): string {
  const driver = query.get('driver')
  if (!driver) throw badRequest('expected the parameter driver')
  return driver
}

function parseGrouping(query: URLSearchParams): string {
  const by = query.get('by') ?? 'claim'
  if (!GROUPINGS.includes(by)) throw badRequest(`by must be one of ${GROUPINGS.join(', ')}`)
  return by
}

function parseRetryRequest(body: Request['body']): RetryRequest {
  const namespace = typeof body.namespace === 'string' ? { namespace: body.namespace } : {}
  return { kind: parseText(body, 'kind'), name: parseText(body, 'name'), ...namespace, dryRun: body.dryRun === true }
}

function parseText(body: Request['body'], field: string): string {
  const value = body[field]
  if (typeof value !== 'string' || value === '') throw badRequest(`expected the text ${field}`)
  return value
}
