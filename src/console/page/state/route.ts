// The current route as a signal. Changes of filters replace the history entry; changes of screen and selection add one.
import { signal } from '@preact/signals'
import { formatRoute, parseRoute, type Route, type ScreenName } from '../logic/url.ts'

export const route = signal<Route>({ screen: 'overview', params: {} })

export function startRouting(): void {
  const read = () => {
    route.value = parseRoute(location.hash)
  }
  addEventListener('hashchange', read)
  read()
}

export function goTo(screen: ScreenName, params: Readonly<Record<string, string>> = {}): void {
  navigate({ screen, params }, 'push')
}

/** Changes parameters of the current screen. An empty value removes the parameter. */
export function setParams(params: Readonly<Record<string, string>>, how: 'push' | 'replace' = 'replace'): void {
  const { screen, params: current } = route.value
  navigate({ screen, params: { ...current, ...params } }, how)
}

function navigate(next: Route, how: 'push' | 'replace'): void {
  const address = formatRoute(next)
  if (address === formatRoute(route.value)) return
  if (how === 'push') history.pushState(null, '', address)
  else history.replaceState(null, '', address)
  route.value = parseRoute(address)
}
