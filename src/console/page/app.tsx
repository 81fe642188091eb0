// Entry point of the page: exchanges the token of the printed URL for a session, then shows the console.
import { render } from 'preact'
import type { ConsoleInfo, Status } from '../protocol.ts'
import './app.css'

async function openSession(): Promise<void> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1]
  if (!token) return
  history.replaceState(null, '', location.pathname)
  await fetch('/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
}

await openSession()
const response = await fetch('/data/info')
const answer = (await response.json()) as ConsoleInfo | Status
render(<main>{'server' in answer ? answer.server.url : answer.message}</main>, document.getElementById('app')!)
