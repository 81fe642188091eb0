// Reports a class for which GetCapacity fails in one segment and succeeds in none, for example because of a bad parameter.
// The error is recorded on the waiting claims, as an event and as an annotation, which the scheduler includes in its message
// about the pod.
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
  recordFailure(key: ItemKey, message: string): void
  recordSuccess(key: ItemKey): void
  /** Must be called for an item that is no longer desired. */
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
  /** The items of the class for which GetCapacity succeeded. */
  readonly succeededItems: Set<ItemKey>
  readonly failedItems: Set<ItemKey>
  /** The annotation of the waiting claims while no item succeeds. */
  message: string | undefined
}

/** Creates the reporter. Its memory is bounded by the items of the driver. */
export function createClassErrors({ client, claims, events, log }: ClassErrorsDeps): ClassErrors {
  claims.addIndex(BY_CLASS, classNamesOfWaitingClaim)
  const states = new Map<string, ClassState>()
  let writes = Promise.resolve()
  const unsubscribe = claims.subscribe({ added: reportOnClaim, updated: reportOnClaim })
  let isStopped = false

  function stateOf(className: string): ClassState {
    const state = states.get(className) ?? { succeededItems: new Set(), failedItems: new Set(), message: undefined }
    states.set(className, state)
    return state
  }

  function reportOnClaim(claim: Claim): void {
    for (const className of classNamesOfWaitingClaim(claim)) {
      const message = states.get(className)?.message
      // Keep the message of another component: otherwise two writers would overwrite each other's messages forever.
      if (message === undefined || annotationOf(claim, LAST_FAILURE) !== undefined) continue
      annotateClaim(claim, message)
      events?.record(persistentVolumeClaimKind, claim, { type: 'Warning', reason: 'ProvisioningFailed', message })
    }
  }

  function removeAnnotations(className: string, message: string): void {
    for (const claim of claims.byIndex(BY_CLASS, className)) {
      if (annotationOf(claim, LAST_FAILURE) === message) annotateClaim(claim, null)
    }
  }

  /** Writes one claim after the other, because a class may have thousands of waiting claims. */
  function annotateClaim(claim: Claim, message: string | null): void {
    const { namespace, name, uid } = claim.metadata
    const body = { metadata: { uid, annotations: { [LAST_FAILURE]: message } } }
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
    recordFailure(key, message) {
      const { className } = parseItemKey(key)
      const state = stateOf(className)
      state.failedItems.add(key)
      state.succeededItems.delete(key)
      if (state.succeededItems.size > 0 || state.message !== undefined) return
      const text = `GetCapacity for class ${JSON.stringify(className)} failed: ${message}`
      state.message =
        text.length > LAST_FAILURE_CHARACTERS_MAX ? `${text.slice(0, LAST_FAILURE_CHARACTERS_MAX)}…` : text
      for (const claim of claims.byIndex(BY_CLASS, className)) reportOnClaim(claim)
    },
    recordSuccess(key) {
      const { className } = parseItemKey(key)
      const state = stateOf(className)
      state.failedItems.delete(key)
      state.succeededItems.add(key)
      if (state.message !== undefined) removeAnnotations(className, state.message)
      state.message = undefined
    },
    forget(key) {
      const { className } = parseItemKey(key)
      const state = states.get(className)
      if (!state) return
      state.failedItems.delete(key)
      state.succeededItems.delete(key)
      if (state.failedItems.size + state.succeededItems.size > 0) return
      if (state.message !== undefined) removeAnnotations(className, state.message)
      states.delete(className)
    },
    async stop() {
      isStopped = true
      unsubscribe()
      await writes
    },
  }
}

/** Returns the class of a claim that waits for a volume; none for other claims. */
function classNamesOfWaitingClaim(claim: Claim): string[] {
  const className = claimClassName(claim)
  return className && !claim.spec?.volumeName && !claim.metadata.deletionTimestamp ? [className] : []
}
