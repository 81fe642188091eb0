// Makes the API server of a simulation answer its clients as a stock API server does: random forms of empty values, no
// WatchList, 429, watches that end at any time, permissions that are denied and kinds that are not served for a while. The
// client splits commits into single writes (one-by-one.ts).
import type { Client } from '../../client/index.ts'
import { asStock, type StockRequest } from '../../client/stock-server.fixture.ts'
import type { Simulation } from './simulation.ts'

export type StockVerb = StockRequest['verb']

export interface StockAnswers {
  /** Returns a client of the server whose responses are those of a stock API server. */
  wrap(server: Client): Client
  /** Denies verbs on a resource and its subresources. The returned function ends the denial. */
  deny(plural: string, verbs: readonly StockVerb[]): () => void
  /** Answers requests for a kind with 404. The returned function serves the kind again. */
  stopServing(plural: string): () => void
  /** Ends all denials, serves all kinds and rejects nothing. Watches still end, and forms still vary. */
  heal(): void
}

/** The share of requests that the server rejects with 429. */
const REJECTION_RATE = 0.005
/** The longest life of a watch. A stock server ends watches after 30 minutes or more, but also whenever it restarts. */
const WATCH_MS_MAX = 8 * 60_000

interface Denial {
  readonly plural: string
  readonly verbs: readonly StockVerb[]
}

export function createStockAnswers(simulation: Simulation): StockAnswers {
  const random = simulation.random('stock answers')
  const denials = new Set<Denial>()
  const unservedKinds = new Set<{ readonly plural: string }>()
  const wrappedClients = new WeakMap<Client, Client>()
  let isHealed = false

  const addItem = <T>(set: Set<T>, item: T) => {
    set.add(item)
    return () => void set.delete(item)
  }
  const occurs = (rate: number, fault: string): boolean => {
    const isOccurring = random() < rate
    if (isOccurring) simulation.tally(fault)
    return isOccurring
  }
  const isDenied = ({ kind, verb }: StockRequest): boolean =>
    [...denials].some(({ plural, verbs }) => plural === kind.plural && verbs.includes(verb))

  return {
    wrap(server) {
      const existingClient = wrappedClients.get(server)
      if (existingClient) return existingClient
      const stock = asStock(server, {
        random,
        clock: simulation.clock,
        serves: ({ plural }) => ![...unservedKinds].some((kind) => kind.plural === plural),
        allows(request) {
          if (!isDenied(request)) return true
          simulation.tally('answered 403')
          return false
        },
        rejects: () => !isHealed && occurs(REJECTION_RATE, 'answered 429'),
        closesWatchesAfterMs: () => random() * WATCH_MS_MAX,
      })
      wrappedClients.set(server, stock)
      return stock
    },
    deny: (plural, verbs) => addItem(denials, { plural, verbs }),
    stopServing: (plural) => addItem(unservedKinds, { plural }),
    heal() {
      isHealed = true
      denials.clear()
      unservedKinds.clear()
    },
  }
}
