// Shows the screen of the route. All screens except Overview and Claims are loaded when they are first opened.
import { Component, type ComponentType } from 'preact'
import { Skeleton } from '../components/empty.tsx'
import type { ScreenName } from '../logic/url.ts'
import { ClaimsScreen } from '../screens/claims/claims-screen.tsx'
import { OverviewScreen } from '../screens/overview/overview-screen.tsx'
import { messageOf } from '../state/api.ts'
import { route } from '../state/route.ts'

type Loader = () => Promise<ComponentType>

const LOADERS: Partial<Readonly<Record<ScreenName, Loader>>> = {
  capacity: async () => (await import('../screens/capacity/capacity-screen.tsx')).CapacityScreen,
  nodes: async () => (await import('../screens/nodes/nodes-screen.tsx')).NodesScreen,
  operations: async () => (await import('../screens/operations/operations-screen.tsx')).OperationsScreen,
  quotas: async () => (await import('../screens/quotas/quotas-screen.tsx')).QuotasScreen,
  drivers: async () => (await import('../screens/drivers/drivers-screen.tsx')).DriversScreen,
  bulk: async () => (await import('../screens/bulk/bulk-screen.tsx')).BulkScreen,
}

const LOADED = new Map<ScreenName, ComponentType>([
  ['overview', OverviewScreen],
  ['claims', ClaimsScreen],
])

export const Screen = () => <LazyScreen key={route.value.screen} name={route.value.screen} />

interface ScreenState {
  readonly problem?: string
}

/** Shows the error of a screen instead of an empty page. */
class LazyScreen extends Component<{ readonly name: ScreenName }, ScreenState> {
  override state: ScreenState = {}

  static override getDerivedStateFromError(error: unknown): ScreenState {
    return { problem: messageOf(error) }
  }

  override componentDidMount(): void {
    const { name } = this.props
    const title = name[0]!.toUpperCase() + name.slice(1)
    document.title = `${title} · Stowage`
    const load = LOADERS[name]
    if (!load || LOADED.has(name)) return
    load().then(
      (screen) => {
        LOADED.set(name, screen)
        this.setState({})
      },
      (error: unknown) => this.setState({ problem: messageOf(error) }),
    )
  }

  override render({ name }: { readonly name: ScreenName }, { problem }: ScreenState) {
    if (problem !== undefined)
      return (
        <div class="screen-scroll" role="alert">
          <p class="note note-bad">This screen has failed: {problem}. Load the page again.</p>
        </div>
      )
    const Loaded = LOADED.get(name)
    return Loaded ? <Loaded /> : <Skeleton rows={10} />
  }
}
