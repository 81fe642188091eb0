// Empties namespaces that are being deleted, then lets them go. Woken by the store's own changes: a namespace
// marked as going, or an object inside one that is finally gone.
import type { Kind } from '../../api/kind.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Namespace } from '../../api/types/namespace.ts'
import {
  collectionPrefix,
  deleteObject,
  mergeFinalize,
  type ObjectDeps,
  SYSTEM_USER,
  updateObject,
} from '../../apiserver/index.ts'
import { clone } from '../../base/clone.ts'
import type { Logger } from '../../base/log.ts'

export interface NamespaceControllerOptions {
  readonly objects: ObjectDeps
  readonly kinds: readonly Kind[]
  readonly log: Logger
}

const RETRY_MS = 1_000
const CONTENT_FINALIZER = 'kubernetes'

/** Runs until the signal; settles when the last pass is over. */
export async function runNamespaceController(options: NamespaceControllerOptions, signal: AbortSignal): Promise<void> {
  const { objects: deps, kinds, log } = options
  const contents = kinds.filter((kind) => kind.namespaced && !kind.faceOf)
  const going = new Set<string>()
  const due = new Set<string>()
  let working: Promise<void> | undefined

  const wake = (namespace: string) => {
    due.add(namespace)
    working ??= work().finally(() => {
      working = undefined
    })
  }

  async function work(): Promise<void> {
    await Promise.resolve() // let `working` be set before the first pass
    for (const namespace of due) {
      due.delete(namespace)
      if (signal.aborted) return
      try {
        await reconcileNamespace(deps, contents, namespace)
      } catch (error) {
        log.warn({ err: error, namespace }, 'namespace could not be emptied; trying again')
        deps.clock.after(RETRY_MS, () => !signal.aborted && wake(namespace))
      }
    }
  }

  const onNamespace = (name: string, namespace: Namespace | undefined) => {
    if (!namespace) going.delete(name)
    else if (namespace.metadata.deletionTimestamp) {
      going.add(name)
      wake(name)
    }
  }

  const prefix = 'core/namespaces/'
  const { entries, revision } = await deps.store.list({ prefix })
  for (const entry of entries) onNamespace(entry.key.slice(prefix.length), deps.objects.decode(entry) as Namespace)
  const ended = new Promise<void>((resolve) => {
    const watch = deps.store.watch({
      prefix: '',
      afterRevision: revision,
      onEvents: (events) => {
        for (const { key, type, entry } of events) {
          if (key.startsWith(prefix)) {
            onNamespace(key.slice(prefix.length), entry && (deps.objects.decode(entry) as Namespace))
          } else if (type === 'delete' && going.size > 0) {
            const namespace = key.split('/')[2]
            if (namespace && going.has(namespace)) wake(namespace)
          }
        }
      },
      onEnd: () => resolve(),
    })
    const stop = () => {
      watch.close()
      resolve()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  await ended
  await working
}

async function reconcileNamespace(deps: ObjectDeps, contents: readonly Kind[], name: string): Promise<void> {
  const entry = await deps.store.get(`core/namespaces/${name}`)
  if (!entry) return // gone meanwhile: nothing left to empty
  const namespace = deps.objects.decode(entry) as Namespace
  if (!namespace.metadata.deletionTimestamp) return
  const left = await deleteContents(deps, contents, name)
  if (left.length > 0) return reportLeft(deps, name, left)
  if (namespace.spec?.finalizers?.includes(CONTENT_FINALIZER)) await letGo(deps, namespace)
}

interface Left {
  readonly plural: string
  readonly name: string
  readonly finalizers: readonly string[]
}

/** Deletes everything in the namespace; what stays behind waits for its finalizers or its grace period. */
async function deleteContents(deps: ObjectDeps, contents: readonly Kind[], namespace: string): Promise<Left[]> {
  const left: Left[] = []
  for (const kind of contents) {
    const resource = deps.resources.preferred(kind.group, kind.plural) ?? {
      kind,
      group: kind.group,
      version: kind.versions[0]!,
      plural: kind.plural,
      apiVersion: kind.versions[0]!,
      stored: kind,
    }
    const { entries } = await deps.store.list({ prefix: collectionPrefix(kind, namespace) })
    const outcomes = await Promise.all(
      entries.map(async (entry) => {
        const { name = '', deletionTimestamp, finalizers = [] } = deps.objects.decode(entry).metadata
        const stays = { plural: kind.plural, name, finalizers }
        if (deletionTimestamp) return stays
        const target = { resource, namespace, name, subresource: '', user: SYSTEM_USER, dryRun: false }
        try {
          const written = await deleteObject(deps, target, {
            dryRun: false,
            gracePeriodSeconds: undefined,
            propagation: 'Background',
            uid: undefined,
            resourceVersion: undefined,
          })
          return written.deleted ? undefined : stays
        } catch (error) {
          if (error instanceof ApiError && error.code === 404) return undefined
          throw error
        }
      }),
    )
    left.push(...outcomes.filter((outcome) => outcome !== undefined))
  }
  return left
}

const target = (deps: ObjectDeps, name: string, subresource: string) => ({
  resource: deps.resources.preferred('', 'namespaces')!,
  namespace: '',
  name,
  subresource,
  user: SYSTEM_USER,
  dryRun: false,
})

async function letGo(deps: ObjectDeps, { metadata: { name = '' } }: Namespace): Promise<void> {
  const withoutOurs = (old: Namespace) => {
    const next = clone(old)
    const finalizers = next.spec?.finalizers?.filter((finalizer) => finalizer !== CONTENT_FINALIZER) ?? []
    next.spec = { ...next.spec, finalizers }
    return next
  }
  await ignoringGone(
    updateObject(deps, target(deps, name, 'finalize'), {
      next: withoutOurs,
      needsVersion: false,
      merge: mergeFinalize,
    }),
  )
}

/** Why the namespace is still there, as a condition people and `kubectl describe` can read. */
async function reportLeft(deps: ObjectDeps, name: string, left: readonly Left[]): Promise<void> {
  const shown = left.slice(0, 5).map(({ plural, name: object, finalizers }) => {
    return `${plural}/${object}${finalizers.length > 0 ? ` (waits for ${finalizers.join(', ')})` : ''}`
  })
  const message = `${left.length} object(s) left: ${shown.join(', ')}${left.length > shown.length ? ', …' : ''}`
  const withCondition = (old: any) => {
    const conditions = (old.status?.conditions ?? []).filter(
      (condition: any) => condition.type !== 'NamespaceContentRemaining',
    )
    const before = old.status?.conditions?.find((condition: any) => condition.type === 'NamespaceContentRemaining')
    const lastTransitionTime =
      before?.lastTransitionTime ?? `${new Date(deps.clock.nowMs()).toISOString().slice(0, 19)}Z`
    const condition = {
      type: 'NamespaceContentRemaining',
      status: 'True',
      lastTransitionTime,
      reason: 'SomeResourcesRemain',
      message,
    }
    return { ...old, status: { ...old.status, conditions: [...conditions, condition] } }
  }
  await ignoringGone(updateObject(deps, target(deps, name, 'status'), { next: withCondition, needsVersion: false }))
}

async function ignoringGone(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 404)) throw error
  }
}
