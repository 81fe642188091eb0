// Runs `stowage unused`: reads claims, pods, volumes and classes, and prints the unused claims, volumes and classes.
import { setMaxListeners } from 'node:events'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { sumOf } from '../../space/bytes.ts'
import { readLists } from '../../space/read-lists.ts'
import { NAMESPACE_LISTS, UNUSED_KINDS } from './cluster-lists.ts'
import { findUnused, type UnusedObject } from './find-unused.ts'
import { formatUnused, type UnusedReport } from './format-unused.ts'

export interface UnusedRequest {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly olderThanMs: number
  readonly output: OutputFormat
}

export interface UnusedDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly hasColors: boolean
}

const TIMEOUT_MS = 10_000
const USER_AGENT = 'stowage-unused'

export async function runUnused(request: UnusedRequest, deps: UnusedDeps): Promise<void> {
  const { clock, signal, hasColors } = deps
  setMaxListeners(0, signal) // every list adds a listener
  const { connection, namespace } = await loadClientConfig(request.kubeconfig, deps)
  const client = httpClient({ connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  try {
    const report = await createReport(
      client,
      { ...request, namespace: request.allNamespaces ? undefined : (request.namespace ?? namespace) },
      deps,
    )
    const text = () => formatUnused(report, { nowMs: clock.nowMs(), hasColors })
    deps.write(await formatOutput(request.output, report, text))
  } finally {
    client.close()
  }
}

/** Throws an error that names the rule if the user may not list claims. */
async function createReport(
  client: Client,
  { namespace, olderThanMs }: { readonly namespace: string | undefined; readonly olderThanMs: number },
  { clock, signal }: UnusedDeps,
): Promise<UnusedReport> {
  const options = { client, namespace, namespaceLists: NAMESPACE_LISTS, signal }
  const { lists, missingRules } = await readLists(UNUSED_KINDS, options)
  const missingRule = missingRules.find(({ list }) => list === 'claims')
  if (missingRule) {
    const hint = namespace === undefined ? '; choose a namespace that you may read: --namespace NAME' : ''
    throw new Error(`Claims cannot be read: you need permission to ${missingRule.rule}${hint}`)
  }
  const unreadable = new Set(missingRules.map(({ list }) => list))
  const items = findUnused({ lists, namespace, unreadable, olderThanMs, nowMs: clock.nowMs() })
  return {
    items: [...items].sort(byFreedBytes),
    freedBytes: sumOf(items.map(({ freedBytes }) => freedBytes)) ?? 0,
    missingRules: missingRules.map(({ rule }) => rule),
  }
}

/** Sorts by freed bytes, the largest amount first. */
const byFreedBytes = (a: UnusedObject, b: UnusedObject): number =>
  (b.freedBytes ?? 0) - (a.freedBytes ?? 0) || a.name.localeCompare(b.name)
