// Implements the console's Insight with the functions behind the commands `why`, `timeline`, `df`, `simulate`, `doctor`,
// `leaks`, `retry`, `grow` and `migrate`, over the console's connection.
import { setMaxListeners } from 'node:events'
import { ApiError, badRequest } from '../../../api/status-error.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { createTransport } from '../../../client/http/transport.ts'
import { type Connection, httpClient } from '../../../client/index.ts'
import type { DfResponse, Insight } from '../../../console/index.ts'
import { diagnose, readSnapshot } from '../../../diagnosis/index.ts'
import { parseDataDir } from '../../flags/common.ts'
import { createSpaceReport } from '../df/run.ts'
import { examineCluster } from '../doctor/run.ts'
import { findDriverLeaks } from '../leaks/find-driver-leaks.ts'
import { parseObject } from '../retry/object-kinds.ts'
import { annotateForRetry } from '../retry/run.ts'
import { simulateWith } from '../simulate/run.ts'
import { parseTarget as parseTimelineTarget, readShownTimeline } from '../timeline/run.ts'
import { parseTarget } from '../why/parse-target.ts'
import { toDiagnosis } from '../why/run.ts'
import { createBulkRuns } from './bulk-runs.ts'
import { manifestsForClaims } from './what-fits.ts'

export interface InsightOptions {
  readonly connection: Connection
  /** The kubeconfig's namespace. */
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
  /** The data directory of a server on this machine, whose disk the doctor checks. Default: that of the commands. */
  readonly dataDir?: string
}

const TIMEOUT_MS = 30_000
const USER_AGENT = 'stowage-console'
/** Progress of long work is not shown. */
const NO_OUTPUT = { write() {} }

export function createInsight(options: InsightOptions): Insight {
  const { connection, clock, random, dataDir } = options
  const transportOptions = { connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT }
  const client = httpClient(transportOptions)
  const transport = createTransport(transportOptions)
  const bulk = createBulkRuns({ client, clock, random })
  return {
    diagnose: (target, signal) =>
      explainErrors(async () => {
        const parsed = parseTarget(`${target.kind}/${target.name}`, target.namespace ?? options.namespace)
        const { namespace } = parsed
        setMaxListeners(0, signal) // every list of a snapshot adds a listener
        const scope = namespace ? { namespace } : {}
        const snapshot = await readSnapshot({ client, ...scope, nowMs: clock.nowMs(), signal })
        return toDiagnosis(diagnose(snapshot, parsed), parsed)
      }),
    readTimeline: ({ kind, name, namespace, uid }, signal) =>
      explainErrors(() =>
        readShownTimeline(
          client,
          parseTimelineTarget(`${kind}/${name}`, { namespace, uid }, options.namespace),
          signal,
        ),
      ),
    readSpace: (by, signal) =>
      explainErrors(async () => {
        setMaxListeners(0, signal)
        const deps = { client, transport, clock, signal, output: NO_OUTPUT }
        return (await createSpaceReport({ by, sort: 'name', namespace: undefined }, deps)) as DfResponse
      }),
    simulate: (request, signal) =>
      explainErrors(() => {
        setMaxListeners(0, signal)
        const namespace = typeof request.namespace === 'string' ? request.namespace : options.namespace
        const manifests = 'manifests' in request ? request.manifests : manifestsForClaims(request, namespace)
        if (typeof manifests !== 'string') throw badRequest('expected manifests, or className, size and count')
        return simulateWith(client, { manifests, namespace }, { clock, signal, progressOutput: NO_OUTPUT })
      }),
    examine: (driver, signal) =>
      explainErrors(() => examineCluster(connection, { driver, dataDir }, { clock, signal })),
    findLeaks: (driver, signal) =>
      explainErrors(() => findDriverLeaks(client, { driver, dataDir: parseDataDir(dataDir) }, { clock, signal })),
    retry: ({ kind, name, namespace = options.namespace, dryRun = false }, signal) =>
      explainErrors(() => {
        const object = parseObject(`${kind}/${name}`)
        return annotateForRetry(client, { ...object, namespace, isDryRun: dryRun }, { clock, signal })
      }),
    bulk: {
      ...bulk,
      preview: (request, signal) => explainErrors(() => bulk.preview(request, signal)),
    },
    close() {
      bulk.close()
      client.close()
      transport.close()
    },
  }
}

/** Converts an Error with a message for the user to a 400 response. The page would show another status as a console failure. */
async function explainErrors<T>(run: () => Promise<T> | T): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const isForUser = error instanceof Error && ['Error', 'UsageError'].includes(error.name)
    throw isForUser && !(error instanceof ApiError) ? badRequest(error.message) : error
  }
}
