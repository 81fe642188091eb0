// Keeps the WebSocket open while the tab is visible, and closes it when the tab has been hidden for a minute.
import { isSignedIn } from './api.ts'
import { socket } from './collections.ts'
import { info } from './data.ts'

const HIDDEN_MS = 60_000

export function startConnection(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => socket.pause(), HIDDEN_MS)
    else if (socket.state.value.is === 'paused') socket.open()
    else socket.retryNow()
  })
  addEventListener('online', () => socket.retryNow())
  // A session that has ended closes the socket too; the request then finds out.
  socket.state.subscribe(({ is }) => {
    if (is === 'lost') info.refresh()
  })
  isSignedIn.subscribe((isOpen) => {
    if (isOpen) socket.open()
    else socket.pause()
  })
}
