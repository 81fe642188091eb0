// Keeps the WebSocket open while the tab is visible, and closes it when the tab has been hidden for a minute.
import { isSignedIn, request } from './api.ts'
import { socket } from './collections.ts'
import { info } from './data.ts'

const HIDDEN_MS = 60_000
const SIGN_IN_CHECK_MS = 5_000

export function startConnection(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => socket.pause(), HIDDEN_MS)
    else if (socket.state.value.is === 'paused' && isSignedIn.value) socket.open()
    else socket.retryNow()
  })
  addEventListener('online', () => socket.retryNow())
  // The server also closes the socket when the session ends; a request then detects it.
  socket.state.subscribe(({ is }) => {
    if (is === 'lost') info.refresh()
  })
  isSignedIn.subscribe((isOpen) => {
    if (isOpen) socket.open()
    else socket.pause()
  })
  // Another tab of this browser may have opened a new session.
  setInterval(() => {
    if (!isSignedIn.value && !document.hidden) request('/data/info').catch(() => {})
  }, SIGN_IN_CHECK_MS)
}
