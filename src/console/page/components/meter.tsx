// A bar that shows a share, with an optional second share behind it, such as the promised share behind the used one.
import { formatPercent } from '../logic/format.ts'

const HIGH_SHARE = 0.75
const FULL_SHARE = 0.9

const levelOf = (share: number): 'ok' | 'warn' | 'bad' =>
  share >= FULL_SHARE ? 'bad' : share >= HIGH_SHARE ? 'warn' : 'ok'

interface MeterProps {
  /** Between 0 and 1; more is drawn as full. */
  readonly share: number
  readonly behind?: number | undefined
  /** What the bar shows, for screen readers. */
  readonly label: string
  /** Whether a large share is not a warning, as for progress. */
  readonly isNeutral?: boolean
}

export function Meter({ share, behind, label, isNeutral }: MeterProps) {
  const width = (value: number) => ({ width: `${Math.max(0, Math.min(1, value)) * 100}%` })
  return (
    <span class="meter" role="img" aria-label={`${label}: ${formatPercent(share)}`}>
      {behind !== undefined && <span class="meter-behind" style={width(behind)} />}
      <span class={`meter-fill level-${isNeutral ? 'ok' : levelOf(share)}`} style={width(share)} />
    </span>
  )
}
