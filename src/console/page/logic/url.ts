// The route of a view: the screen, with its filters, sort order and selection as parameters. It is stored in the fragment of the
// URL, such as #/claims?ns=shop&sort=-size, so that a link reproduces the view without sending it to the server.

export const SCREENS = ['overview', 'claims', 'capacity', 'nodes', 'operations', 'quotas', 'drivers', 'bulk'] as const
export type ScreenName = (typeof SCREENS)[number]

export interface Route {
  readonly screen: ScreenName
  readonly params: Readonly<Record<string, string>>
}

/** Returns the overview for an unknown screen. */
export function parseRoute(fragment: string): Route {
  const [path = '', query = ''] = fragment.replace(/^#?\/?/, '').split('?', 2)
  const screen = SCREENS.find((name) => name === path) ?? 'overview'
  return { screen, params: Object.fromEntries(new URLSearchParams(query)) }
}

/** Omits empty parameters, so that each view has exactly one address. */
export function formatRoute({ screen, params }: Route): string {
  const entries = Object.entries(params).filter(([, value]) => value !== '')
  const query = new URLSearchParams(entries.sort(([a], [b]) => (a < b ? -1 : 1))).toString()
  return `#/${screen}${query === '' ? '' : `?${query}`}`
}

export const linkTo = (screen: ScreenName, params: Readonly<Record<string, string | undefined>> = {}): string =>
  formatRoute({
    screen,
    params: Object.fromEntries(Object.entries(params).map(([key, value]) => [key, value ?? ''])),
  })

export interface SortOrder {
  readonly column: string
  readonly isDescending: boolean
}

/** `-size` sorts by size, largest first. */
export const parseSort = (text: string | undefined, defaultOrder: string): SortOrder => {
  const order = text || defaultOrder
  return order.startsWith('-') ? { column: order.slice(1), isDescending: true } : { column: order, isDescending: false }
}

export const formatSort = ({ column, isDescending }: SortOrder): string => `${isDescending ? '-' : ''}${column}`

/** A parameter with several values, such as status=Pending,Lost. */
export const parseList = (text: string | undefined): readonly string[] =>
  text === undefined || text === '' ? [] : text.split(',')

export const toggleInList = (text: string | undefined, value: string): string => {
  const values = parseList(text)
  return (values.includes(value) ? values.filter((other) => other !== value) : [...values, value]).join(',')
}
