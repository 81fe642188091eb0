// Watches collections across server crashes, resuming each watch from its last revision. Records all events, checks their
// order, and exposes the current objects to the workload.
import { setTimeout as pause } from 'node:timers/promises'
import type { SeenEvent } from '../helpers/watch.ts'
import type { Cluster } from './cluster.ts'

export interface RecordedEvent extends SeenEvent {
  readonly collection: Collection
}

export const COLLECTIONS = {
  pods: '/api/v1/pods',
  claims: '/api/v1/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  quotas: '/api/v1/resourcequotas',
  configMaps: '/api/v1/configmaps',
  nodes: '/api/v1/nodes',
  namespaces: '/api/v1/namespaces',
  drivers: '/apis/storage.k8s.io/v1/csidrivers',
  classes: '/apis/storage.k8s.io/v1/storageclasses',
  attributes: '/apis/storage.k8s.io/v1/volumeattributesclasses',
} as const
export type Collection = keyof typeof COLLECTIONS

export interface WatchRecorder {
  /** By `namespace/name` or name, as of the last event. */
  readonly now: Readonly<Record<Collection, ReadonlyMap<string, any>>>
  /** All events of all collections, in the order of revisions. */
  history(): RecordedEvent[]
  /** Events out of order, repeated, or inconsistent with the known objects. */
  readonly violations: readonly string[]
  /** How often a watch was resumed. */
  readonly resumed: number
  /** Settles when the recorded objects match a fresh list of every collection. */
  caughtUp(): Promise<void>
  /** Replays each collection with one uninterrupted watch: missing, repeated or reordered events. */
  compareWithOneWatch(): Promise<string[]>
  end(): Promise<void>
}

export async function createWatchRecorder(cluster: Cluster): Promise<WatchRecorder> {
  const names = Object.keys(COLLECTIONS) as Collection[]
  const now = Object.fromEntries(names.map((name) => [name, new Map()])) as Record<Collection, Map<string, any>>
  const recorded = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Collection, RecordedEvent[]>
  const first = new Map<Collection, number>()
  const last = new Map<Collection, number>()
  const violations: string[] = []
  const stopped = new AbortController()
  let resumed = -names.length // the first connection of each watch is not a resumption

  for (const name of names) {
    const { json } = await cluster.server().call('GET', COLLECTIONS[name])
    for (const object of json.items) now[name].set(keyOf(object), object)
    first.set(name, Number(json.metadata.resourceVersion))
    last.set(name, Number(json.metadata.resourceVersion))
  }

  function take(collection: Collection, { type, object }: any): void {
    if (type === 'ERROR') return void violations.push(`watch of ${collection} failed: ${object.message}`)
    const key = keyOf(object)
    const revision = Number(object.metadata.resourceVersion)
    const at = `${type} ${collection} ${key} at ${revision}`
    if (revision <= last.get(collection)!) violations.push(`${at} came after ${last.get(collection)}`)
    if (now[collection].has(key) !== (type !== 'ADDED'))
      violations.push(`${at}: the object ${type === 'ADDED' ? 'already exists' : 'does not exist'}`)
    last.set(collection, revision)
    if (type === 'DELETED') now[collection].delete(key)
    else now[collection].set(key, object)
    recorded[collection].push({ collection, type, object, revision })
  }

  async function follow(collection: Collection): Promise<void> {
    while (!stopped.signal.aborted) {
      const from = last.get(collection)!
      const isOpened = await read(cluster, COLLECTIONS[collection], from, stopped.signal, (event) =>
        take(collection, event),
      )
      if (isOpened) resumed++
      await pause(30)
    }
  }
  const following = Promise.all(names.map(follow))

  const history = () =>
    Object.values(recorded)
      .flat()
      .sort((one, other) => one.revision - other.revision)

  return {
    now,
    violations,
    history,
    get resumed() {
      return resumed
    },
    async caughtUp() {
      for (const name of names) {
        for (;;) {
          const { json } = await cluster.server().call('GET', COLLECTIONS[name])
          const listed = json.items.map(({ metadata }: any) => metadata.resourceVersion).sort()
          const known = [...now[name].values()].map(({ metadata }) => metadata.resourceVersion).sort()
          if (JSON.stringify(listed) === JSON.stringify(known)) break
          await pause(50)
        }
      }
    },
    async compareWithOneWatch() {
      const differences: string[] = []
      for (const name of names) {
        const expected = recorded[name].map(describeEvent)
        const seen: string[] = []
        const complete = new AbortController()
        if (expected.length === 0) continue
        await read(cluster, COLLECTIONS[name], first.get(name)!, complete.signal, ({ type, object }) => {
          const revision = Number(object.metadata?.resourceVersion)
          if (revision <= last.get(name)!) seen.push(describeEvent({ type, object, revision }))
          if (type === 'ERROR' || revision >= last.get(name)!) complete.abort()
        })
        const index = expected.findIndex((line, at) => line !== seen[at])
        if (index >= 0) differences.push(`${name}: recorded ${expected[index]}, one watch has ${seen[index]}`)
        else if (seen.length !== expected.length) differences.push(`${name}: never received ${seen[expected.length]}`)
      }
      return differences
    },
    async end() {
      stopped.abort()
      await following
    },
  }
}

const describeEvent = ({ type, object, revision }: SeenEvent) => `${type} ${keyOf(object)} at ${revision}`

export const keyOf = ({ metadata: { namespace, name } }: any): string => (namespace ? `${namespace}/${name}` : name)

/** Reads one watch until its connection ends. Returns whether it was opened. */
async function read(
  cluster: Cluster,
  path: string,
  from: number,
  signal: AbortSignal,
  take: (event: any) => void,
): Promise<boolean> {
  let isOpened = false
  try {
    const response = await cluster.server().open('GET', `${path}?watch=1&resourceVersion=${from}`)
    const stop = () => void response.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      isOpened = response.statusCode === 200
      if (signal.aborted || !isOpened) {
        stop()
        return false
      }
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop()!
        for (const line of lines) if (!signal.aborted) take(JSON.parse(line))
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  } catch {
    // the connection was cut
  }
  return isOpened
}
