// Reads the usage of mounted volumes for a process that is separate from the API server: from the metrics of a Stowage server,
// and on other servers from the kubelets of the nodes whose pods use growing claims. A failed read leaves the usage unknown, so that
// nothing grows.
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { operationKind } from '../api/kinds/operation/operation.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { claimClassName } from '../api/kinds/shared/class-names.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Transport } from '../client/http/transport.ts'
import type { Client } from '../client/index.ts'
import type { CacheSet } from '../runtime/index.ts'
import { findPolicy } from '../volumes/auto-grow.ts'
import { claimsOfPod } from '../volumes/claims-of-pod.ts'
import { readUsage, type UsageReport } from '../volumes/read-usage.ts'
import type { UsageByClaim } from '../volumes/volume-usage.ts'

/** Minimum interval between two readings. Nodes measure usage at most once per minute. */
const READ_INTERVAL_MS_MIN = 30_000

export interface RemoteUsageDeps {
  readonly transport: Pick<Transport, 'call'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Logger
  readonly signal: AbortSignal
}

/** The client and the caches of a leadership term. */
export interface UsageSource {
  readonly client: Pick<Client, 'serves'>
  readonly caches: CacheSet
}

export function createRemoteUsageReader(deps: RemoteUsageDeps): (source: UsageSource) => Promise<UsageByClaim> {
  const { transport, clock, log, signal } = deps
  let reading: { readonly startedMs: number; readonly usage: Promise<UsageByClaim> } | undefined
  let loggedProblem: string | undefined

  async function read({ client, caches }: UsageSource): Promise<UsageByClaim> {
    const nodes = (await client.serves(operationKind)) ? [] : findNodes(caches)
    const report = await readUsage(nodes, { client, transport, signal, progress: { add: () => {} } })
    logProblem(report)
    return report.byClaim
  }

  /** Logs a problem when it occurs for the first time or changes. */
  function logProblem({ problem, missingRule, nodeProblems }: UsageReport): void {
    const [nodeProblem] = nodeProblems
    const reason =
      problem ??
      (missingRule ? `the process needs permission to ${missingRule}` : undefined) ??
      (nodeProblem ? `node ${nodeProblem[0]}: ${nodeProblem[1]}` : undefined)
    if (reason === loggedProblem) return
    loggedProblem = reason
    if (reason) log.warn({ reason }, 'the usage of some volumes cannot be read; they do not grow automatically')
  }

  return (source) => {
    const nowMs = clock.monotonicMs()
    if (!reading || nowMs - reading.startedMs >= READ_INTERVAL_MS_MIN)
      reading = { startedMs: nowMs, usage: read(source) }
    return reading.usage
  }
}

/** Returns the nodes of pods that use a claim with a policy; none until the pods are known. */
function findNodes(caches: CacheSet): string[] {
  const pods = caches.of(podKind)
  const [claims, classes] = [caches.of(persistentVolumeClaimKind), caches.of(storageClassKind)]
  const mayGrow = (key: string): boolean => {
    const claim = claims.get(key)
    return claim !== undefined && findPolicy(claim, classes.get({ name: claimClassName(claim) ?? '' })).is === 'policy'
  }
  if (!pods.isSynced) return []
  const names = pods.list().flatMap((pod) => {
    const node = pod.spec?.nodeName
    return node && claimsOfPod(pod).some(mayGrow) ? [node] : []
  })
  return [...new Set(names)].sort()
}
