// Shows the results of actions, and announces them to screen readers.
import { StatusIcon } from '../components/status.tsx'
import { toasts } from '../state/toasts.ts'

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, tone, text }) => (
      <p key={id} class="toast">
        <StatusIcon tone={tone} />
        <span class="wrap-anywhere">{text}</span>
      </p>
    ))}
  </div>
)
