// --change-budget and --change-cooldown: how fast volumes of a driver may be changed. Shared by the commands that change
// volumes: up, controllers and resizer.
import { Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import { UsageError } from '../../base/usage-error.ts'
import type { ThrottleOptions } from '../../controllers/volume-changes/index.ts'

export interface ChangeThrottleFlags {
  readonly changeBudget?: string
  readonly changeCooldown?: string
}

export const CHANGE_BUDGET_DOC = 'how many volume changes may start in a time, per driver: 10/1m'
export const CHANGE_COOLDOWN_DOC = 'how long a volume is not changed again after a change: 6h'

export const changeBudgetOption = () => new Option('--change-budget <changes/time>', CHANGE_BUDGET_DOC)
export const changeCooldownOption = () => new Option('--change-cooldown <duration>', CHANGE_COOLDOWN_DOC)

/** Undefined without the flags: changes are not throttled. */
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
  const [, count = '', time = ''] = /^(\d{1,6})\/(.+)$/.exec(text) ?? []
  const changes = Number(count)
  const periodMs = parseDuration(/^\d/.test(time) ? time : `1${time}`)
  if (changes < 1 || !periodMs) {
    throw new UsageError(`--change-budget ${JSON.stringify(text)}: expected changes and a time, such as 10/1m`)
  }
  return { changes, periodMs }
}
