// Reports a class for which GetCapacity fails in every segment, for example because of a bad parameter. Such a class has no
// capacity objects, so no pod with a claim of the class can be scheduled. The reason is recorded as an event and an
// annotation of the waiting claims, from which the scheduler adds it to the message of the pod.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, keyOfObject } from '../../client/index.ts'
import type { Cache, EventRecorder } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { LAST_FAILURE, LAST_FAILURE_CHARACTERS_MAX } from '../../volumes/names.ts'
import { type ItemKey, parseItemKey } from './items.ts'

export interface ClassErrors {
  failed(key: ItemKey, message: string): void
  succeeded(key: ItemKey): void
  /** The item is no longer desired. */
  forget(key: ItemKey): void
  /** Settles when the write in flight has settled. */
  stop(): Promise<void>
}

export interface ClassErrorsDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events?: Pick<EventRecorder, 'record'>
  readonly log: Logger
}

const BY_CLASS = 'capacity: class of waiting claims'

interface ClassState {
  /** The items of the class for which the driver has answered. */
  readonly succeeded: Set<ItemKey>
  readonly failed: Set<ItemKey>
  /** The annotation of the waiting claims, while every item fails. */
  text: string | undefined
}

/** Bounded by the items of the driver. */
export function createClassErrors({ client, claims, events, log }: ClassErrorsDeps): ClassErrors {
  claims.addIndex(BY_CLASS, classesOfWaiting)
  const states = new Map<string, ClassState>()
  let writes = Promise.resolve()
  const unsubscribe = claims.subscribe({ added: reportTo, updated: reportTo })
  let isStopped = false

  function stateOf(className: string): ClassState {
    const state = states.get(className) ?? { succeeded: new Set(), failed: new Set(), text: undefined }
    states.set(className, state)
    return state
  }

  function reportTo(claim: Claim): void {
    for (const className of classesOfWaiting(claim)) {
      const text = states.get(className)?.text
      // A reason of another component stays: two writers would replace each other's text for ever.
      if (text === undefined || annotationOf(claim, LAST_FAILURE) !== undefined) continue
      annotate(claim, text)
      events?.record(persistentVolumeClaimKind, claim, { type: 'Warning', reason: 'ProvisioningFailed', message: text })
    }
  }

  function clear(className: string, text: string): void {
    for (const claim of claims.byIndex(BY_CLASS, className)) {
      if (annotationOf(claim, LAST_FAILURE) === text) annotate(claim, null)
    }
  }

  /** Writes one claim after the other, because a class may have thousands of waiting claims. */
  function annotate(claim: Claim, text: string | null): void {
    const { namespace, name, uid } = claim.metadata
    const body = { metadata: { uid, annotations: { [LAST_FAILURE]: text } } }
    writes = writes.then(async () => {
      if (isStopped) return
      try {
        claims.applyWriteResult(
          await client.patch(persistentVolumeClaimKind, { namespace, name }, { type: 'merge', body }),
        )
      } catch (error) {
        log.debug({ err: error, claim: keyOfObject(claim) }, 'the failure of GetCapacity was not recorded on the claim')
      }
    })
  }

  return {
    failed(key, message) {
      const { className } = parseItemKey(key)
      const state = stateOf(className)
      state.failed.add(key)
      state.succeeded.delete(key)
      if (state.succeeded.size > 0 || state.text !== undefined) return
      const text = `GetCapacity for class ${JSON.stringify(className)} failed: ${message}`
      state.text = text.length > LAST_FAILURE_CHARACTERS_MAX ? `${text.slice(0, LAST_FAILURE_CHARACTERS_MAX)}…` : text
      for (const claim of claims.byIndex(BY_CLASS, className)) reportTo(claim)
    },
    succeeded(key) {
      const { className } = parseItemKey(key)
      const state = stateOf(className)
      state.failed.delete(key)
      state.succeeded.add(key)
      if (state.text !== undefined) clear(className, state.text)
      state.text = undefined
    },
    forget(key) {
      const { className } = parseItemKey(key)
      const state = states.get(className)
      if (!state) return
      state.failed.delete(key)
      state.succeeded.delete(key)
      if (state.failed.size + state.succeeded.size > 0) return
      if (state.text !== undefined) clear(className, state.text)
      states.delete(className)
    },
    async stop() {
      isStopped = true
      unsubscribe()
      await writes
    },
  }
}

/** Returns the class of a claim without a volume. */
function classesOfWaiting(claim: Claim): string[] {
  const className = claimClassName(claim)
  return className && !claim.spec?.volumeName && !claim.metadata.deletionTimestamp ? [className] : []
}
