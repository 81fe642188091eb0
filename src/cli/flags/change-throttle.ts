// The flags --change-budget and --change-cooldown, which limit the rate of volume changes.
import { Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { ThrottleOptions } from '../../controllers/volume-changes/index.ts'

export interface ChangeThrottleFlags {
  readonly changeBudget?: string
  readonly changeCooldown?: string
}

export const CHANGE_BUDGET_DOC = 'maximum number of volume changes per driver and period, such as 10/1m'
export const CHANGE_COOLDOWN_DOC = 'minimum time between two changes of a volume, such as 6h'

export const changeBudgetOption = () => new Option('--change-budget <changes/time>', CHANGE_BUDGET_DOC)
export const changeCooldownOption = () => new Option('--change-cooldown <duration>', CHANGE_COOLDOWN_DOC)

/** Returns undefined without the flags: changes are not throttled. */
export function parseChangeThrottle({
  changeBudget = '',
  changeCooldown = '',
}: ChangeThrottleFlags): ThrottleOptions | undefined {
  const budget = changeBudget === '' ? undefined : parseBudget(changeBudget)
  const cooldownMs = changeCooldown === '' || changeCooldown === '0' ? 0 : parseDuration(changeCooldown)
  if (cooldownMs === undefined) {
    throw new UsageError(`--change-cooldown ${JSON.stringify(changeCooldown)}: expected a duration such as 30m or 6h`)
  }
  return budget || cooldownMs > 0 ? { budget, cooldownMs } : undefined
}

function parseBudget(text: string) {
  const [, count = '', period = ''] = /^(\d{1,6})\/(.+)$/.exec(text) ?? []
  const changes = Number(count)
  const periodMs = parseDuration(/^\d/.test(period) ? period : `1${period}`)
  if (changes < 1 || !periodMs) {
    throw new UsageError(
      `--change-budget ${JSON.stringify(text)}: expected a number of changes and a period, such as 10/1m`,
    )
  }
  return { changes, periodMs }
}
