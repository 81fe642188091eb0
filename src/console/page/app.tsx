// Entry point of the page: exchanges the token of the printed URL for a session, opens the WebSocket, and shows the screens.
import { render } from 'preact'
import { Shell } from './shell/shell.tsx'
import { openSession } from './state/api.ts'
import { startConnection } from './state/connection.ts'
import { startKeys } from './state/keys.ts'
import { startClock } from './state/now.ts'
import { startRouting } from './state/route.ts'
import { showState } from './state/shown-state.ts'
import './app.css'

await openSession()
// Opening the printed address in a tab that already shows the page changes only the fragment.
addEventListener('hashchange', () => void openSession())
startRouting()
startClock()
startKeys()
startConnection()
const root = document.getElementById('app')!
showState(root)
render(<Shell />, root)
