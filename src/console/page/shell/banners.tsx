// Shows problems that concern every screen: the session has ended, the connection is lost, or the API server has a
// problem.
import { StatusIcon } from '../components/status.tsx'
import { formatClock } from '../logic/format.ts'
import { isSignedIn } from '../state/api.ts'
import { claims, socket } from '../state/collections.ts'
import { info } from '../state/data.ts'
import { nowMs } from '../state/now.ts'

export const Banners = () => (
  <div role="status">
    <SessionBanner />
    <ConnectionBanner />
    <ServerBanner />
  </div>
)

function SessionBanner() {
  if (isSignedIn.value) return null
  return (
    <div class="banner banner-bad">
      <StatusIcon tone="bad" />
      <span>
        The session has ended, or the console has restarted. Nothing is updated. Open the address that the console has
        printed; it contains the token.
      </span>
    </div>
  )
}

function ConnectionBanner() {
  const state = socket.state.value
  if (state.is !== 'lost' || !isSignedIn.value) return null
  const waitS = Math.max(0, Math.ceil((state.retryAtMs - nowMs.value) / 1_000))
  return (
    <div class="banner banner-bad">
      <StatusIcon tone="bad" />
      <span>
        Not updated since {formatClock(state.sinceMs)} UTC: the console does not respond.{' '}
        {waitS > 0 ? `Trying again in ${waitS} s.` : 'Trying again.'}
      </span>
      <button type="button" class="button button-small" onClick={() => socket.retryNow()}>
        Try now
      </button>
    </div>
  )
}

function ServerBanner() {
  const problem = info.state.value.value?.server.problem
  const { error } = claims.state.value
  const message = problem ?? (error?.retryAfterMs === undefined ? undefined : error.message)
  if (message === undefined || socket.state.value.is === 'lost') return null
  return (
    <div class="banner">
      <StatusIcon tone="warn" />
      <span class="wrap-anywhere">The API server does not respond: {message}</span>
    </div>
  )
}
