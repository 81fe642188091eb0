// Runs `stowage why`: reads a snapshot, diagnoses the object, prints the tree. Throws ExitError with code 1 if the object is not
// ready, and UsageError, which exits with code 2, if the object cannot be read.

import { setMaxListeners } from 'node:events'
import { ApiError } from '../../../api/status-error.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import {
  type DiagnoseResult,
  type Diagnosis,
  diagnose,
  readSnapshot,
  TARGET_KINDS,
  type Target,
} from '../../../diagnosis/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { formatNames } from '../../format-names.ts'
import { loadValueFormatter, type OutputFormat } from '../../output/format-output.ts'
import { followObject } from './follow.ts'
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
  /** Writes to standard error. */
  writeError(text: string): void
}

const TIMEOUT_MS = 10_000
const USER_AGENT = 'stowage-why'

export async function runWhy(object: string, flags: WhyFlags, deps: WhyDeps): Promise<void> {
  const { clock, signal } = deps
  setMaxListeners(0, signal) // every list of a snapshot adds a listener
  const config = await loadClientConfig(flags.kubeconfig, deps)
  const target = parseTarget(object, flags.namespace ?? config.namespace)
  const client = httpClient({ connection: config.connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  try {
    await printDiagnosis(client, target, flags, deps)
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(error.message) // for exit code 2
    throw error
  } finally {
    client.close()
  }
}

export async function printDiagnosis(
  client: Pick<Client, 'list' | 'serves'>,
  target: Target,
  flags: Pick<WhyFlags, 'output' | 'watch'>,
  deps: Pick<WhyDeps, 'clock' | 'signal' | 'write' | 'writeError' | 'hasColors'>,
): Promise<void> {
  const { clock, signal } = deps
  const { namespace } = target
  const readDiagnosis = async () =>
    diagnose(await readSnapshot({ client, ...(namespace ? { namespace } : {}), nowMs: clock.nowMs(), signal }), target)
  const formatValue = await loadValueFormatter(flags.output, { isStream: flags.watch ?? false })
  const format = (diagnosis: Diagnosis, hasColors: boolean) =>
    formatValue ? formatValue(diagnosis) : formatTree(diagnosis, { hasColors })
  let printed: Diagnosis | undefined
  const print = (diagnosis: Diagnosis) => {
    if (printed && flags.output === 'text') deps.write('\n')
    deps.write(format(diagnosis, deps.hasColors))
    printed = diagnosis
  }
  const result = flags.watch
    ? await followObject({
        diagnose: readDiagnosis,
        formatForComparison: (diagnosis) => maskChangingValues(format(diagnosis, false)),
        print,
        note: (message) => deps.writeError(`stowage: ${message}\n`),
        clock,
        signal,
      })
    : await readDiagnosis()
  if (result.is === 'not found' && printed?.reason === 'BeingDeleted') {
    deps.writeError(`stowage: ${target.kind}/${target.name} was deleted\n`)
    return
  }
  const diagnosis = toDiagnosis(result, target)
  if (!flags.watch) print(diagnosis)
  if (diagnosis.state !== 'ready') throw new ExitError(1)
}

/** Throws UsageError if the object could not be read. */
export function toDiagnosis(result: DiagnoseResult, target: Target): Diagnosis {
  const { kind, name } = target
  switch (result.is) {
    case 'diagnosed':
      return result.diagnosis
    case 'forbidden':
      throw new UsageError(`${kind}/${name} cannot be read: you need permission to ${formatNames(result.rules)}`)
    case 'not found':
      throw new UsageError(notFoundMessage(target, result.similarNames))
  }
}

function notFoundMessage({ kind, namespace, name }: Target, similarNames: readonly string[]): string {
  const place = TARGET_KINDS[kind].isNamespaced ? ` in the namespace ${namespace}` : ''
  const hint = similarNames.length > 0 ? ` Similar names: ${similarNames.join(', ')}.` : ''
  return `${kind}/${name} does not exist${place}.${hint}`
}

/** Masks ages, waiting times and numbers of attempts, which change between reads even if the causes stay the same. */
export const maskChangingValues = (text: string): string =>
  text.replace(/\b\d+ (?:s|min|h|d)\b|(Seconds"?: ?|\battempts?"?:? ?)\d+/g, '$1')
