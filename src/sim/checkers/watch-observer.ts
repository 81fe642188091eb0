// Rule `watch`: a client behind the faulty network lists, watches, resumes broken watches and relists after 410, as any client
// does. It must see each revision of each object that the store committed once, in order, without a gap.
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError } from '../../api/status-error.ts'
import { collectionPrefix } from '../../apiserver/index.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import type { Stored } from '../engine/follow-store.ts'
import type { Env } from '../environment/process.ts'
import type { CheckContext } from './context.ts'

const WATCHED: readonly Kind[] = [
  persistentVolumeClaimKind,
  persistentVolumeKind,
  podKind,
  nodeKind,
  volumeAttachmentKind,
  resourceQuotaKind,
] as unknown as Kind[]
/** Watched with sendInitialEvents, as our caches do; the other kinds by a list and a watch. */
const STREAMED: readonly Kind[] = [persistentVolumeClaimKind, podKind, volumeAttachmentKind] as unknown as Kind[]
const RETRY_MS = 1_000
const WATCH_SECONDS = 300

export function addObserver({ system, view, report }: CheckContext): void {
  const logs = WATCHED.map((kind) => createCommitLog(collectionPrefix(kind), (text) => report('watch', text)))
  view.onWrites((writes) => {
    for (const log of logs) log.committed(writes)
  })
  let isFirst = true
  system.cluster.follow(() => {
    // Of writes in progress at a crash, only the last state of each object is seen.
    if (!isFirst) for (const log of logs) log.interrupted()
    isFirst = false
  })
  system.cluster.add('observer', (env, client) => {
    setMaxListeners(0, env.signal)
    for (const [index, kind] of WATCHED.entries()) {
      const log = logs[index]!
      log.startsOver()
      void follow(env, client, kind, log)
    }
  })
}

async function follow({ clock, signal }: Env, client: Client, kind: Kind, log: CommitLog): Promise<void> {
  let version: string | undefined
  for (;;) {
    try {
      if (version === undefined && !STREAMED.includes(kind)) {
        const { items, resourceVersion } = await client.list(kind)
        log.listed(items, Number(resourceVersion))
        version = resourceVersion
      }
      /** Initial events, until the bookmark that completes them. */
      let state: Readonly<KubeObject>[] | undefined = version === undefined ? [] : undefined
      const from = version === undefined ? { sendInitialEvents: true } : { resourceVersion: version }
      for await (const event of client.watch(kind, { ...from, timeoutSeconds: WATCH_SECONDS, signal })) {
        if (state) {
          if (event.type !== 'bookmark') state.push(event.object)
          else {
            log.listed(state, Number(event.resourceVersion))
            version = event.resourceVersion
            state = undefined
          }
          continue
        }
        const at: string =
          event.type === 'bookmark' ? event.resourceVersion : (event.object.metadata.resourceVersion ?? '0')
        if (event.type === 'bookmark') log.reached(Number(at))
        else log.shown(event.type, event.object, Number(at))
        version = at
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === 410 || error.code === 504) version = undefined
    }
    await clock.sleep(RETRY_MS)
  }
}

export interface CommitLog {
  committed(writes: readonly Stored[]): void
  /** The store may have committed writes that the checker did not see. */
  interrupted(): void
  startsOver(): void
  listed(items: readonly Readonly<KubeObject>[], revision: number): void
  shown(type: 'added' | 'modified' | 'deleted', object: Readonly<KubeObject>, revision: number): void
  /** A bookmark: everything up to this revision was shown. */
  reached(revision: number): void
}

interface Commit {
  readonly revision: number
  readonly key: string
  readonly isGone: boolean
}

/** Compares the commits of one collection with what a watcher was shown. */
export function createCommitLog(prefix: string, report: (text: string) => void): CommitLog {
  /** Commits not shown yet, oldest first. */
  let pending: Commit[] = []
  /** The last commit of each key. */
  const newest = new Map<string, Commit>()
  let cursor = 0
  let seen = 0
  /** Between these revisions there may be commits that the checker did not see. */
  let gap: { readonly after: number; until: number } | undefined
  let isListed = false

  const isUnknown = (revision: number): boolean => gap !== undefined && revision > gap.after && revision <= gap.until

  function pass(revision: number): Commit[] {
    const passed = pending.filter((one) => one.revision <= revision)
    pending = pending.filter((one) => one.revision > revision)
    cursor = Math.max(cursor, revision)
    return passed
  }

  return {
    committed(writes) {
      for (const { key, value, revision } of writes) {
        if (gap && gap.until === Number.POSITIVE_INFINITY) gap.until = Math.max(...writes.map((one) => one.revision))
        seen = Math.max(seen, revision)
        if (!key.startsWith(prefix)) continue
        const commit = { revision, key: key.slice(prefix.length), isGone: value === undefined }
        newest.set(commit.key, commit)
        if (revision > cursor) pending.push(commit)
      }
    },
    interrupted() {
      gap = { after: gap ? gap.after : seen, until: Number.POSITIVE_INFINITY }
    },
    startsOver() {
      isListed = false
      pending = []
    },
    listed(items, revision) {
      if (isListed && revision < cursor && !isUnknown(cursor)) {
        report(`a list of ${prefix} shows revision ${revision}, and ${cursor} was shown before`)
      }
      pass(revision)
      isListed = true
      cursor = revision
      pending = pending.filter((one) => one.revision > revision)
      for (const item of items) {
        const key = keyOfObject(item)
        const known = newest.get(key)
        const at = Number(item.metadata.resourceVersion)
        if (isUnknown(revision) || (known && known.revision > revision)) continue
        if (known?.isGone !== false || known.revision !== at) {
          report(`a list of ${prefix} at ${revision} has ${key} at ${at}, and it was committed at ${known?.revision}`)
        }
      }
      const listed = new Set(items.map((item) => keyOfObject(item)))
      for (const { key, isGone, revision: at } of newest.values()) {
        if (!isGone && at <= revision && !isUnknown(revision) && !listed.has(key)) {
          report(`a list of ${prefix} at ${revision} leaves out ${key} of ${at}`)
        }
      }
    },
    shown(type, object, revision) {
      const key = keyOfObject(object)
      if (revision <= cursor) {
        report(`${prefix}${key} is shown at ${revision} after ${cursor}: twice, or out of order`)
        return
      }
      const passed = pass(revision)
      if (isUnknown(revision)) return
      const own = passed.at(-1)
      if (own?.revision !== revision || own.key !== key || own.isGone !== (type === 'deleted')) {
        report(`${prefix}${key} is shown as ${type} at ${revision}, and was not committed so`)
      }
      for (const { key: left, revision: at } of passed) {
        if (at !== revision) report(`${prefix}${left} of revision ${at} was left out before ${revision}`)
      }
    },
    reached(revision) {
      if (revision < cursor) report(`a bookmark of ${prefix} says ${revision} after ${cursor}`)
      for (const { key, revision: at } of pass(revision)) {
        if (!isUnknown(at)) report(`${prefix}${key} of revision ${at} was left out before the bookmark ${revision}`)
      }
    },
  }
}
