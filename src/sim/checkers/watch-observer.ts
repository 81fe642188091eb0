// Rule `watch`: a client behind the faulty network lists, watches, resumes broken watches and relists after 410.
// It must receive each committed revision of each object exactly once, in order and without a gap. In setups with a
// watched cache, a second observer lists again every few seconds, because a gap can follow every initial state.
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError } from '../../api/status-error.ts'
import { collectionPrefix } from '../../apiserver/index.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import type { StoreWrite } from '../engine/follow-store.ts'
import type { Env } from '../environment/process.ts'
import type { CheckContext } from './context.ts'

const WATCHED_KINDS: readonly Kind[] = [
  persistentVolumeClaimKind,
  persistentVolumeKind,
  podKind,
  nodeKind,
  volumeAttachmentKind,
  resourceQuotaKind,
] as unknown as Kind[]
/** Kinds that are watched with sendInitialEvents, as the caches do; the others are listed and then watched. */
const STREAMED_KINDS: readonly Kind[] = [persistentVolumeClaimKind, podKind, volumeAttachmentKind] as unknown as Kind[]
/** The kinds that the workload `cache` writes most. */
const RELISTED_KINDS: readonly Kind[] = [configMapKind, persistentVolumeClaimKind] as unknown as Kind[]
const RETRY_DELAY_MS = 1_000
const WATCH_SECONDS = 300
/** Short, so that lists often coincide with writes. */
const RELIST_SECONDS = 2

export function addObserver(context: CheckContext): void {
  addWatcher(context, 'observer', WATCHED_KINDS, { watchSeconds: WATCH_SECONDS, shouldRelist: false })
  if (context.system.setup.cacheFollower)
    addWatcher(context, 'relisting-observer', RELISTED_KINDS, { watchSeconds: RELIST_SECONDS, shouldRelist: true })
}

interface WatchOptions {
  readonly watchSeconds: number
  /** Whether every watch starts with the state, instead of resuming the previous one. */
  readonly shouldRelist: boolean
}

function addWatcher(
  { system, view, report }: CheckContext,
  name: string,
  kinds: readonly Kind[],
  options: WatchOptions,
): void {
  const logs = kinds.map((kind) => createCommitLog(collectionPrefix(kind), (text) => report('watch', text)))
  view.onWrites((writes) => {
    for (const log of logs) log.recordWrites(writes)
  })
  let isFirstStart = true
  system.cluster.follow(() => {
    // Of writes in progress at a crash, watchers receive only the last state of each object.
    if (!isFirstStart) for (const log of logs) log.recordInterruption()
    isFirstStart = false
  })
  system.cluster.add(name, (env, client) => {
    setMaxListeners(0, env.signal)
    for (const [index, kind] of kinds.entries()) {
      const log = logs[index]!
      log.recordRestart()
      void follow(env, client, kind, log, options)
    }
  })
}

async function follow(
  { clock, signal }: Env,
  client: Client,
  kind: Kind,
  log: CommitLog,
  { watchSeconds, shouldRelist }: WatchOptions,
): Promise<void> {
  let resourceVersion: string | undefined
  for (;;) {
    try {
      if (shouldRelist) resourceVersion = undefined
      if (resourceVersion === undefined && !shouldRelist && !STREAMED_KINDS.includes(kind)) {
        const list = await client.list(kind)
        log.checkList(list.items, Number(list.resourceVersion))
        resourceVersion = list.resourceVersion
      }
      /** Initial events, until the bookmark that completes them. */
      let state: Readonly<KubeObject>[] | undefined = resourceVersion === undefined ? [] : undefined
      const start = resourceVersion === undefined ? { sendInitialEvents: true } : { resourceVersion }
      for await (const event of client.watch(kind, { ...start, timeoutSeconds: watchSeconds, signal })) {
        if (state) {
          if (event.type !== 'bookmark') state.push(event.object)
          else {
            log.checkList(state, Number(event.resourceVersion))
            resourceVersion = event.resourceVersion
            state = undefined
          }
          continue
        }
        const version: string =
          event.type === 'bookmark' ? event.resourceVersion : (event.object.metadata.resourceVersion ?? '0')
        if (event.type === 'bookmark') log.checkBookmark(Number(version))
        else log.checkEvent(event.type, event.object, Number(version))
        resourceVersion = version
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === 410 || error.code === 504) resourceVersion = undefined
    }
    await clock.sleep(RETRY_DELAY_MS)
  }
}

export interface CommitLog {
  recordWrites(writes: readonly StoreWrite[]): void
  /** Records a restart of the server: the store may have committed writes that the checker did not receive. */
  recordInterruption(): void
  /** Records a restart of the watcher, which lists again. */
  recordRestart(): void
  checkList(items: readonly Readonly<KubeObject>[], revision: number): void
  checkEvent(type: 'added' | 'modified' | 'deleted', object: Readonly<KubeObject>, revision: number): void
  /** Checks that everything up to the revision of a bookmark was delivered. */
  checkBookmark(revision: number): void
}

interface Commit {
  readonly revision: number
  readonly key: string
  readonly isDeleted: boolean
}

/** Compares the commits of one collection with the events that a watcher received. */
export function createCommitLog(prefix: string, report: (text: string) => void): CommitLog {
  /** Commits that were not delivered yet, oldest first. */
  let pendingCommits: Commit[] = []
  /** The last commit of each key. */
  const newestCommits = new Map<string, Commit>()
  let cursor = 0
  let lastRevision = 0
  /** Between these revisions there may be commits that the checker did not receive. */
  let gap: { readonly after: number; until: number } | undefined
  let isListed = false

  const isUnknown = (revision: number): boolean => gap !== undefined && revision > gap.after && revision <= gap.until

  function takeCommits(revision: number): Commit[] {
    const passedCommits = pendingCommits.filter((commit) => commit.revision <= revision)
    pendingCommits = pendingCommits.filter((commit) => commit.revision > revision)
    cursor = Math.max(cursor, revision)
    return passedCommits
  }

  return {
    recordWrites(writes) {
      for (const { key, value, revision } of writes) {
        if (gap && gap.until === Number.POSITIVE_INFINITY)
          gap.until = Math.max(...writes.map((write) => write.revision))
        lastRevision = Math.max(lastRevision, revision)
        if (!key.startsWith(prefix)) continue
        const commit = { revision, key: key.slice(prefix.length), isDeleted: value === undefined }
        newestCommits.set(commit.key, commit)
        if (revision > cursor) pendingCommits.push(commit)
      }
    },
    recordInterruption() {
      gap = { after: gap ? gap.after : lastRevision, until: Number.POSITIVE_INFINITY }
    },
    recordRestart() {
      isListed = false
      pendingCommits = []
    },
    checkList(items, revision) {
      if (isListed && revision < cursor && !isUnknown(cursor)) {
        report(`a list of ${prefix} has revision ${revision}, but ${cursor} was delivered before`)
      }
      takeCommits(revision)
      isListed = true
      cursor = revision
      pendingCommits = pendingCommits.filter((commit) => commit.revision > revision)
      for (const item of items) {
        const key = keyOfObject(item)
        const lastCommit = newestCommits.get(key)
        const at = Number(item.metadata.resourceVersion)
        if (isUnknown(revision) || (lastCommit && lastCommit.revision > revision)) continue
        if (lastCommit?.isDeleted !== false || lastCommit.revision !== at) {
          report(
            `a list of ${prefix} at ${revision} has ${key} at ${at}, but it was committed at ${lastCommit?.revision}`,
          )
        }
      }
      const listedKeys = new Set(items.map((item) => keyOfObject(item)))
      for (const { key, isDeleted, revision: at } of newestCommits.values()) {
        if (!isDeleted && at <= revision && !isUnknown(revision) && !listedKeys.has(key)) {
          report(`a list of ${prefix} at ${revision} omits ${key} of ${at}`)
        }
      }
    },
    checkEvent(type, object, revision) {
      const key = keyOfObject(object)
      if (revision <= cursor) {
        report(`${prefix}${key} was delivered at ${revision} after ${cursor}: twice, or out of order`)
        return
      }
      const passedCommits = takeCommits(revision)
      if (isUnknown(revision)) return
      const deliveredCommit = passedCommits.at(-1)
      if (
        deliveredCommit?.revision !== revision ||
        deliveredCommit.key !== key ||
        deliveredCommit.isDeleted !== (type === 'deleted')
      ) {
        report(`${prefix}${key} was delivered as ${type} at ${revision}, but was not committed that way`)
      }
      for (const { key: omittedKey, revision: at } of passedCommits) {
        if (at !== revision) report(`${prefix}${omittedKey} of revision ${at} was omitted before ${revision}`)
      }
    },
    checkBookmark(revision) {
      if (revision < cursor) report(`a bookmark of ${prefix} has ${revision} after ${cursor}`)
      for (const { key, revision: at } of takeCommits(revision)) {
        if (!isUnknown(at)) report(`${prefix}${key} of revision ${at} was omitted before the bookmark ${revision}`)
      }
    },
  }
}
