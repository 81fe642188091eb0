// Parses the flags of the bulk commands: those that grow and migrate share, and the sizes, durations and rates of their
// own flags. An invalid value causes a UsageError that names the flag. Commands import this file directly, not
// index.ts, so that `--help` does not load the code that runs the command.
import { canonicalQuantity, isQuantity, quantitySign } from '../../api/quantity.ts'
import { parseLabelSelector } from '../../api/selectors.ts'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import { invalidFlag } from '../flags/flag-types.ts'
import type { OutputFormat } from '../output/format-output.ts'

export interface BulkFlags {
  readonly namespace?: string
  readonly selector?: string
  readonly kubeconfig?: string
  readonly parallel: string
  readonly timeout: string
  readonly maxFailures: string
  readonly dryRun?: boolean
  readonly output: OutputFormat
}

export interface BulkRequest {
  /** Default: the kubeconfig's namespace. */
  readonly namespace?: string
  readonly selector?: string
  readonly kubeconfig?: string
  /** Maximum number of claims in progress. */
  readonly claimsInProgressMax: number
  /** Minimum time between two starts. */
  readonly intervalMs: number
  /** A claim that takes longer counts as failed. */
  readonly timeoutMs: number
  /** After more failures than this, no further claim is started. */
  readonly failuresMax: number
  readonly isDryRun: boolean
  readonly output: OutputFormat
}

/** Parses all shared flags except the interval, which is a duration for grow and a rate for migrate. */
export const readBulkFlags = (
  { namespace, selector, kubeconfig, ...flags }: BulkFlags,
  { parallelMax }: { readonly parallelMax: number },
): Omit<BulkRequest, 'intervalMs'> => ({
  namespace,
  selector: selector === undefined ? undefined : readSelector(selector),
  kubeconfig,
  claimsInProgressMax: readCount('--parallel', flags.parallel, { min: 1, max: parallelMax }),
  timeoutMs: readDuration('--timeout', flags.timeout, { minMs: 1 }),
  failuresMax: readCount('--max-failures', flags.maxFailures, { min: 0, max: FAILURES_MAX }),
  isDryRun: flags.dryRun === true,
  output: flags.output,
})

const FAILURES_MAX = 1_000_000

function readCount(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw invalidFlag(flag, text, `a whole number from ${min} to ${max}`)
}

export function readDuration(flag: string, text: string, { minMs }: { minMs: number }): number {
  const ms = text === '0' ? 0 : parseDuration(text)
  if (ms !== undefined && ms >= minMs) return ms
  throw invalidFlag(flag, text, 'a duration, such as 30s or 10m')
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** Returns the time between two starts: 200 ms for `5/s`. */
export function readRate(flag: string, text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)\/(s|m|h)$/.exec(text.trim()) ?? []
  if (count !== undefined && Number(count) > 0) return UNITS_MS[unit!]! / Number(count)
  throw invalidFlag(flag, text, 'a count per second, minute or hour, such as 5/s or 100/m')
}

export function readSize(flag: string, text: string): string {
  if (isQuantity(text) && quantitySign(text) > 0) return canonicalQuantity(text)
  const hint = text.startsWith('-') || text.startsWith('+') ? '; grow never lowers a request' : ''
  throw invalidFlag(flag, text, `a size above 0, such as 20Gi${hint}`)
}

function readSelector(text: string): string {
  try {
    parseLabelSelector(text)
    return text
  } catch (error) {
    throw new UsageError(`--selector ${JSON.stringify(text)}: ${(error as Error).message}`)
  }
}
