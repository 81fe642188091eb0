// Navigates between the screens, and shows the current server and user.
import { Icon } from '../components/icon.tsx'
import { linkTo, SCREENS, type ScreenName } from '../logic/url.ts'
import { info } from '../state/data.ts'
import { isHelpOpen } from '../state/keys.ts'
import { route } from '../state/route.ts'
import { scope, setScope } from '../state/scope.ts'

export const SCREEN_TITLES: Readonly<Record<ScreenName, string>> = {
  overview: 'Overview',
  claims: 'Claims',
  capacity: 'Capacity',
  nodes: 'Nodes',
  operations: 'Operations',
  quotas: 'Quotas',
  drivers: 'Drivers',
  bulk: 'Bulk',
}

export const Nav = () => (
  <nav class="nav" aria-label="Screens">
    <div class="brand">
      <svg viewBox="0 0 20 20" aria-hidden="true" focusable="false">
        <path
          d="M3 6.5 10 3l7 3.5v7L10 17l-7-3.5zM3 6.5l7 3.5 7-3.5M10 10v7"
          fill="none"
          stroke="currentcolor"
          stroke-width="1.6"
          stroke-linejoin="round"
        />
      </svg>
      <span class="brand-name">Stowage</span>
    </div>
    <ul class="nav-list">
      {SCREENS.map((screen) => (
        <li key={screen}>
          <a class="nav-item" href={linkTo(screen)} aria-current={route.value.screen === screen ? 'page' : undefined}>
            <Icon name={screen} />
            {SCREEN_TITLES[screen]}
          </a>
        </li>
      ))}
    </ul>
    <NavFoot />
  </nav>
)

function NavFoot() {
  const { value } = info.state.value
  return (
    <div class="nav-foot">
      {value && (
        <dl>
          <dt>Server</dt>
          <dd>
            {value.server.url.replace(/^https?:\/\//, '')}
            {value.server.version !== undefined && ` (${value.server.version})`}
          </dd>
          <dt>User</dt>
          <dd>{value.user ?? 'not known'}</dd>
        </dl>
      )}
      {scope !== '' && (
        <div>
          Only namespace {scope}.{' '}
          <button type="button" class="button-link" onClick={() => setScope('')}>
            Show all
          </button>
        </div>
      )}
      <button
        type="button"
        class="button-link"
        onClick={() => {
          isHelpOpen.value = true
        }}
      >
        Keyboard shortcuts
      </button>
    </div>
  )
}
