// Runs `stowage why`: reads a snapshot, diagnoses the object, prints the tree. Throws ExitError with code 1 if the object is not
// ready, and UsageError, which exits with code 2, if it cannot be read.

import { setMaxListeners } from 'node:events'

import { ApiError } from '../../../api/status-error.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import { type Diagnosis, diagnose, readSnapshot, TARGET_KINDS, type Target } from '../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { listNames } from '../../list-names.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { formatTree } from './format-tree.ts'
import { parseTarget } from './parse-target.ts'

interface WhyFlags {
  readonly namespace?: string
  readonly watch?: boolean
  readonly kubeconfig?: string
  readonly output: OutputFormat
}

interface WhyDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly hasColors: boolean
}

const TIMEOUT_MS = 10_000
/** Between two reads with --watch. */
const WATCH_INTERVAL_MS = 2_000
const USER_AGENT = 'stowage-why'

export async function runWhy(object: string, flags: WhyFlags, deps: WhyDeps): Promise<void> {
  const { clock, signal } = deps
  setMaxListeners(0, signal) // every list of a snapshot adds a listener
  const config = await loadClientConfig(flags.kubeconfig, deps)
  const target = parseTarget(object, flags.namespace ?? config.namespace)
  const client = httpClient({ connection: config.connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  let printed = ''
  try {
    for (;;) {
      const diagnosis = await examine(client, target, deps)
      const text = await formatOutput(flags.output, diagnosis, () => formatTree(diagnosis, deps))
      if (maskAges(text) !== maskAges(printed)) deps.write(text)
      printed = text
      if (diagnosis.state === 'ready') return
      if (!flags.watch) throw new ExitError(1)
      await clock.sleep(WATCH_INTERVAL_MS, signal)
    }
  } finally {
    client.close()
  }
}

async function examine(client: Client, target: Target, { clock, signal }: WhyDeps): Promise<Diagnosis> {
  const { namespace, name, kind } = target
  try {
    const snapshot = await readSnapshot({ client, ...(namespace ? { namespace } : {}), nowMs: clock.nowMs(), signal })
    const result = diagnose(snapshot, target)
    if (result.is === 'diagnosed') return result.diagnosis
    if (result.is === 'forbidden')
      throw new UsageError(`${kind}/${name} cannot be read: you need the right to ${listNames(result.rules)}`)
    throw new UsageError(notFoundMessage(target, result.similarNames))
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(error.message) // for exit code 2
    throw error
  }
}

function notFoundMessage({ kind, namespace, name }: Target, similarNames: readonly string[]): string {
  const place = TARGET_KINDS[kind].isNamespaced ? ` in the namespace ${namespace}` : ''
  const hint = similarNames.length > 0 ? ` Similar names: ${similarNames.join(', ')}.` : ''
  return `${kind}/${name} does not exist${place}.${hint}`
}

/** Ages change with every read, and are no change of the tree. */
const maskAges = (text: string): string => text.replace(/\b\d+ s\b|(Seconds"?: ?)\d+/g, '$1')
