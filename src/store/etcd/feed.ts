// Feed: an etcd watch on all keys of the store. A broken watch resumes after the last delivered revision, at another member
// if necessary, so that changes arrive in order, once, and in complete etcd transactions.
import type { Clock } from '../../base/clock.ts'
import type { EtcdClient } from './client.ts'
import { type Event, Event_EventType, type KeyValue, type WatchResponse } from './gen/etcd_pb.js'
import type { KeySpan } from './layout.ts'

const RECONNECT_MS_MIN = 20 // doubled with every consecutive failure
const RECONNECT_MS_MAX = 1_000

export interface FeedOptions {
  readonly client: EtcdClient
  readonly clock: Clock
  readonly span: KeySpan
  /** An etcd revision. */
  readonly afterRevision: number
  /** Receives the changes of one or more complete transactions. */
  readonly onChanges: (changes: readonly FeedChange[]) => void
  /** Called when the feed has stopped because etcd has compacted changes that were not delivered. */
  readonly onCompacted: (compactedRevision: number) => void
}

export interface FeedChange {
  readonly is: 'put' | 'delete'
  readonly kv: KeyValue
  readonly revision: number
}

export interface Feed {
  /** Opens the watch again at the client's current member, because an expected change did not arrive. */
  restart(): void
  stop(): void
}

export function startFeed({ client, clock, span, afterRevision, onChanges, onCompacted }: FeedOptions): Feed {
  let deliveredRevision = afterRevision
  let fragments: Event[] = []
  let failures = 0
  let isStopped = false
  let cancel = () => {}

  function connect(): void {
    fragments = []
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
    fragments.push(...response.events)
    if (response.fragment) return // the rest of these transactions follows
    const changes = fragments.map(changeOf).filter(({ revision }) => revision > deliveredRevision)
    fragments = []
    const lastChange = changes.at(-1)
    if (!lastChange) return
    deliveredRevision = lastChange.revision
    onChanges(changes)
  }

  function restart(): void {
    if (isStopped) return
    cancel()
    connect()
  }

  function stop(): void {
    isStopped = true
    cancel()
  }

  connect()
  return { restart, stop }
}

function changeOf({ type, kv }: Event): FeedChange {
  if (!kv) throw new Error('etcd sent an event without a key')
  return { is: type === Event_EventType.DELETE ? 'delete' : 'put', kv, revision: Number(kv.modRevision) }
}
