// One watch on etcd over everything of this store, kept alive: when it breaks, it goes on after the last revision that
// was delivered, at another member if need be. So changes come in order, each once, whole transactions at a time.
import type { Clock } from '../../base/clock.ts'
import type { EtcdClient } from './client.ts'
import { type Event, Event_EventType, type KeyValue, type WatchResponse } from './gen/etcd_pb.js'
import type { KeySpan } from './layout.ts'

const RECONNECT_MS_MIN = 20 // doubled with every failure in a row
const RECONNECT_MS_MAX = 1_000

export interface FeedOptions {
  readonly client: EtcdClient
  readonly clock: Clock
  readonly span: KeySpan
  /** In etcd's count. */
  readonly afterRevision: number
  /** The changes of one or more whole transactions. */
  readonly onChanges: (changes: readonly FeedChange[]) => void
  /** etcd has dropped changes that were not delivered yet; the feed is over. */
  readonly onCompacted: (compactedRevision: number) => void
}

export interface FeedChange {
  readonly is: 'put' | 'delete'
  readonly kv: KeyValue
  readonly revision: number
}

export interface Feed {
  /** Asks anew, where the client now thinks it is answered: nothing has come for too long. */
  renew(): void
  stop(): void
}

export function startFeed({ client, clock, span, afterRevision, onChanges, onCompacted }: FeedOptions): Feed {
  let deliveredRevision = afterRevision
  let parts: Event[] = []
  let failures = 0
  let isStopped = false
  let cancel = () => {}

  function connect(): void {
    parts = []
    cancel = client.watch(
      { key: span.start, rangeEnd: span.end, startRevision: BigInt(deliveredRevision + 1), fragment: true },
      { onResponse: receive, onEnd: reconnect },
    )
  }

  function reconnect(): void {
    if (isStopped) return
    const pauseMs = Math.min(RECONNECT_MS_MIN * 2 ** failures++, RECONNECT_MS_MAX)
    cancel = clock.after(pauseMs, connect)
  }

  function receive(response: WatchResponse): void {
    if (response.compactRevision > 0n) {
      stop()
      onCompacted(Number(response.compactRevision))
      return
    }
    if (response.canceled) {
      cancel()
      reconnect()
      return
    }
    failures = 0
    parts.push(...response.events)
    if (response.fragment) return // the rest of the same transactions is still to come
    const changes = parts.map(changeOf).filter(({ revision }) => revision > deliveredRevision)
    parts = []
    const last = changes.at(-1)
    if (!last) return
    deliveredRevision = last.revision
    onChanges(changes)
  }

  function renew(): void {
    if (isStopped) return
    cancel()
    connect()
  }

  function stop(): void {
    isStopped = true
    cancel()
  }

  connect()
  return { renew, stop }
}

function changeOf({ type, kv }: Event): FeedChange {
  if (!kv) throw new Error('etcd sent an event without a key')
  return { is: type === Event_EventType.DELETE ? 'delete' : 'put', kv, revision: Number(kv.modRevision) }
}
