// The watched collections of the page. A collection is watched while a component uses it and for some time afterwards, so that
// returning to a screen shows its rows immediately.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ConsoleObject } from '../../protocol.ts'
import type { Identified } from '../logic/sorted-view.ts'
import { projectClaim } from '../rows/claim.ts'
import {
  projectCsiNode,
  projectDriver,
  projectEvent,
  projectNode,
  projectOperation,
  projectQuota,
} from '../rows/cluster.ts'
import { projectPod } from '../rows/pod.ts'
import {
  projectAttachment,
  projectAttributesClass,
  projectCapacity,
  projectClass,
  projectVolume,
} from '../rows/storage.ts'
import { isSignedIn } from './api.ts'
import { Collection } from './collection.ts'
import { scheduleFlush } from './scheduler.ts'
import { scopedPath } from './scope.ts'
import { WatchSocket } from './watch-socket.ts'

export const socket = new WatchSocket({
  connect: () => new WebSocket(`ws://${location.host}/watch`),
  nowMs: () => Date.now(),
  setTimer: (run, ms) => window.setTimeout(run, ms),
  clearTimer: (timer) => window.clearTimeout(timer),
  random: Math.random,
  onSessionEnd: () => {
    isSignedIn.value = false
  },
})

/** How long an unused collection is still watched. */
const UNUSED_WATCH_MS = 60_000

/** The newest revision of any collection, for tests that wait until a change is shown. */
export const shownRev = signal('')

export class WatchedCollection<R extends Identified> extends Collection<R> {
  readonly path: string
  #users = 0
  #stop: (() => void) | undefined
  #timer: number | undefined

  constructor(path: string, project: (object: ConsoleObject) => R) {
    super(project)
    this.path = path
  }

  /** Watches the collection until the returned function is called. */
  use(): () => void {
    this.#users++
    window.clearTimeout(this.#timer)
    this.#stop ??= this.#start()
    return () => {
      if (--this.#users > 0) return
      this.#timer = window.setTimeout(() => this.#end(), UNUSED_WATCH_MS)
    }
  }

  #start(): () => void {
    this.state.value = { is: 'loading' }
    const showRev = () => {
      if (this.rev !== undefined) shownRev.value = laterRev(shownRev.value, this.rev)
    }
    const flush = () => {
      this.version.value++
    }
    return socket.watch({
      path: this.path,
      rev: () => this.rev,
      receive: (message) => {
        if (this.apply(message)) scheduleFlush(flush)
        scheduleFlush(showRev)
      },
    })
  }

  #end(): void {
    this.#stop?.()
    this.#stop = undefined
    this.clear()
    this.version.value++
  }
}

/** Revisions of one server are decimal numbers; those of unknown form replace each other. */
const laterRev = (rev: string, other: string): string => (Number(other) < Number(rev) ? rev : other)

export const claims = new WatchedCollection(scopedPath('/api/v1', 'persistentvolumeclaims'), projectClaim)
export const pods = new WatchedCollection(scopedPath('/api/v1', 'pods'), projectPod)
export const volumes = new WatchedCollection('/api/v1/persistentvolumes', projectVolume)
export const nodes = new WatchedCollection('/api/v1/nodes', projectNode)
export const quotas = new WatchedCollection(scopedPath('/api/v1', 'resourcequotas'), projectQuota)
export const classes = new WatchedCollection('/apis/storage.k8s.io/v1/storageclasses', projectClass)
export const attributesClasses = new WatchedCollection(
  '/apis/storage.k8s.io/v1/volumeattributesclasses',
  projectAttributesClass,
)
export const capacities = new WatchedCollection('/apis/storage.k8s.io/v1/csistoragecapacities', projectCapacity)
export const attachments = new WatchedCollection('/apis/storage.k8s.io/v1/volumeattachments', projectAttachment)
export const csiNodes = new WatchedCollection('/apis/storage.k8s.io/v1/csinodes', projectCsiNode)
export const drivers = new WatchedCollection('/apis/storage.k8s.io/v1/csidrivers', projectDriver)
export const operations = new WatchedCollection(scopedPath('/apis/stowage.dev/v1', 'operations'), projectOperation)

/** Returns a collection of the events of one object. */
export const eventsOf = (namespace: string, uid: string) =>
  new WatchedCollection(
    `/api/v1${namespace ? `/namespaces/${namespace}` : ''}/events?fieldSelector=${encodeURIComponent(`involvedObject.uid=${uid}`)}`,
    projectEvent,
  )

/** The part of a collection that useCollections needs, for any row type. */
type AnyCollection = Pick<WatchedCollection<never>, 'use' | 'version' | 'state'>

/** Watches the collections while the component is mounted, and renders it again when they change. */
export function useCollections(...collections: readonly AnyCollection[]): void {
  useEffect(() => {
    const releases = collections.map((collection) => collection.use())
    return () => {
      for (const release of releases) release()
    }
  }, collections as unknown[])
  for (const collection of collections) {
    void collection.version.value
    void collection.state.value
  }
}
