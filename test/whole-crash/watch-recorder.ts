// Watches collections across server crashes: each watch resumes from its last revision. Records all events, checks their
// order, and provides the current objects to the workload.
import { setTimeout as pause } from 'node:timers/promises'
import type { ReceivedEvent } from '../helpers/watch.ts'
import type { Cluster } from './cluster.ts'

export interface RecordedEvent extends ReceivedEvent {
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
  /** The current objects of each collection, by `namespace/name` or name. */
  readonly current: Readonly<Record<Collection, ReadonlyMap<string, any>>>
  /** Returns the events of all collections, ordered by revision. */
  history(): RecordedEvent[]
  /** Messages about events that were reordered, repeated, or inconsistent with the current objects. */
  readonly violations: readonly string[]
  /** Number of resumed watches. */
  readonly resumptions: number
  /** Resolves when the recorded objects equal a new list of every collection. */
  waitUntilCaughtUp(): Promise<void>
  /** Watches each collection once more without interruption, and returns its first difference from the recorded events. */
  compareWithOneWatch(): Promise<string[]>
  stop(): Promise<void>
}

export async function createWatchRecorder(cluster: Cluster): Promise<WatchRecorder> {
  const names = Object.keys(COLLECTIONS) as Collection[]
  const objects = Object.fromEntries(names.map((name) => [name, new Map()])) as Record<Collection, Map<string, any>>
  const recordedEvents = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Collection,
    RecordedEvent[]
  >
  const firstRevisions = new Map<Collection, number>()
  const lastRevisions = new Map<Collection, number>()
  const violations: string[] = []
  const stopController = new AbortController()
  let resumptions = -names.length // the first connection of each watch is not counted

  for (const name of names) {
    const { json } = await cluster.server().call('GET', COLLECTIONS[name])
    for (const object of json.items) objects[name].set(keyOf(object), object)
    firstRevisions.set(name, Number(json.metadata.resourceVersion))
    lastRevisions.set(name, Number(json.metadata.resourceVersion))
  }

  function recordEvent(collection: Collection, { type, object }: any): void {
    if (type === 'ERROR') return void violations.push(`watch of ${collection} failed: ${object.message}`)
    const key = keyOf(object)
    const revision = Number(object.metadata.resourceVersion)
    const description = `${type} ${collection} ${key} at ${revision}`
    if (revision <= lastRevisions.get(collection)!)
      violations.push(`${description} arrived after revision ${lastRevisions.get(collection)}`)
    if (objects[collection].has(key) !== (type !== 'ADDED'))
      violations.push(`${description}: the object ${type === 'ADDED' ? 'already exists' : 'does not exist'}`)
    lastRevisions.set(collection, revision)
    if (type === 'DELETED') objects[collection].delete(key)
    else objects[collection].set(key, object)
    recordedEvents[collection].push({ collection, type, object, revision })
  }

  async function follow(collection: Collection): Promise<void> {
    while (!stopController.signal.aborted) {
      const fromRevision = lastRevisions.get(collection)!
      const wasOpened = await readWatch(
        cluster,
        COLLECTIONS[collection],
        fromRevision,
        stopController.signal,
        (event) => recordEvent(collection, event),
      )
      if (wasOpened) resumptions++
      await pause(30)
    }
  }
  const watches = Promise.all(names.map(follow))

  const history = () =>
    Object.values(recordedEvents)
      .flat()
      .sort((left, right) => left.revision - right.revision)

  return {
    current: objects,
    violations,
    history,
    get resumptions() {
      return resumptions
    },
    async waitUntilCaughtUp() {
      for (const name of names) {
        for (;;) {
          const { json } = await cluster.server().call('GET', COLLECTIONS[name])
          const listedVersions = json.items.map(({ metadata }: any) => metadata.resourceVersion).sort()
          const current = [...objects[name].values()].map(({ metadata }) => metadata.resourceVersion).sort()
          if (JSON.stringify(listedVersions) === JSON.stringify(current)) break
          await pause(50)
        }
      }
    },
    async compareWithOneWatch() {
      const differences: string[] = []
      for (const name of names) {
        const expectedEvents = recordedEvents[name].map(describeEvent)
        const actualEvents: string[] = []
        const completion = new AbortController()
        if (expectedEvents.length === 0) continue
        await readWatch(
          cluster,
          COLLECTIONS[name],
          firstRevisions.get(name)!,
          completion.signal,
          ({ type, object }) => {
            const revision = Number(object.metadata?.resourceVersion)
            if (revision <= lastRevisions.get(name)!) actualEvents.push(describeEvent({ type, object, revision }))
            if (type === 'ERROR' || revision >= lastRevisions.get(name)!) completion.abort()
          },
        )
        const index = expectedEvents.findIndex((event, position) => event !== actualEvents[position])
        if (index >= 0)
          differences.push(`${name}: recorded ${expectedEvents[index]}, a new watch returned ${actualEvents[index]}`)
        else if (actualEvents.length !== expectedEvents.length)
          differences.push(`${name}: not recorded: ${actualEvents[expectedEvents.length]}`)
      }
      return differences
    },
    async stop() {
      stopController.abort()
      await watches
    },
  }
}

const describeEvent = ({ type, object, revision }: ReceivedEvent) => `${type} ${keyOf(object)} at ${revision}`

export const keyOf = ({ metadata: { namespace, name } }: any): string => (namespace ? `${namespace}/${name}` : name)

/** Reads one watch until its connection ends. Returns whether the server accepted the watch. */
async function readWatch(
  cluster: Cluster,
  path: string,
  fromRevision: number,
  signal: AbortSignal,
  onEvent: (event: any) => void,
): Promise<boolean> {
  let isOpened = false
  try {
    const response = await cluster.server().open('GET', `${path}?watch=1&resourceVersion=${fromRevision}`)
    const stop = () => void response.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      isOpened = response.statusCode === 200
      if (signal.aborted || !isOpened) {
        stop()
        return false
      }
      let partialLine = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (partialLine + chunk).split('\n')
        partialLine = lines.pop()!
        for (const line of lines) if (!signal.aborted) onEvent(JSON.parse(line))
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  } catch {
    // The connection was closed.
  }
  return isOpened
}
