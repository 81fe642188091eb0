// Reconciles one claim: reads, plans (plan-claim.ts) and applies. The process may crash between any two writes, so each
// of them can be repeated.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { findDefaultClass } from '../../api/kinds/storage-class/default-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { type CommitWrite, keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { chooseVolume } from '../../volumes/choose-volume.ts'
import { type Claim, requirementsOf, type Volume } from '../../volumes/matching.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE } from '../../volumes/names.ts'
import { bindingWrites, isBindingComplete } from './bind-claim.ts'
import { statusWithoutVolume, statusWithReadiness } from './claim-status.ts'
import { activePodsOf, type BindingContext, readClaim, readVolume } from './context.ts'
import { mergePatches } from './merge-patches.ts'
import { type ClaimAction, isBindCompleted, planClaim } from './plan-claim.ts'

/** Attempts if an object changes during the reconcile. After the last one the claim is requeued with backoff. */
const ATTEMPTS_MAX = 3

export async function reconcileClaim(key: ObjectKey, context: BindingContext): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    context.claimWaker.reconcileStarted(key)
    try {
      return await reconcileClaimOnce(key, context)
    } catch (error) {
      context.provisioningTimes.countError(key)
      if (isNotFound(error)) return backOff('the claim or its volume was deleted during the reconcile')
      if (!isConflict(error)) throw error
      if (attempt >= ATTEMPTS_MAX) return backOff('the claim or its volume changed during the reconcile')
      await readClaim(context, refOfKey(key))
    } finally {
      context.claimWaker.reconcileEnded(key)
    }
  }
}

/** Whether the claim and its volume are bound to each other, and no wait or measurement of the claim is left to end. */
export function isClaimSettled(
  key: ObjectKey,
  { claims, volumes, claimWaker, provisioningTimes }: BindingContext,
): boolean {
  const claim = claims.get(key)
  if (!claim || !isBindCompleted(claim)) return false
  const volume = volumes.get(claim.spec?.volumeName)
  return volume !== undefined && isBindingComplete(volume, claim) && !claimWaker.has(key) && !provisioningTimes.has(key)
}

async function reconcileClaimOnce(key: ObjectKey, context: BindingContext): Promise<Outcome> {
  const claim = context.claims.get(key)
  if (!claim) {
    context.provisioningTimes.cancel(key)
    return done
  }
  const name = claim.spec?.volumeName
  const action = plan(claim, { namedVolume: name ? context.volumes.get(name) : undefined, isLive: false }, context)
  if (action.do !== 'read volume') return apply(action, claim, context)
  const namedVolume = await readVolume(context, name ?? '')
  return apply(plan(claim, { namedVolume, isLive: true }, context), claim, context)
}

function plan(
  claim: Claim,
  lookup: { readonly namedVolume: Volume | undefined; readonly isLive: boolean },
  context: BindingContext,
): ClaimAction {
  const { classes, index, inProcessProvisioners, runningProvisioners, claimWaker, gates } = context
  const className = claimClassName(claim)
  return planClaim({
    claim,
    ...lookup,
    storageClass: className ? classes.get(className) : undefined,
    defaultClass: () => findDefaultClass(classes.list()),
    findVolume({ isDelayed }) {
      const requirements = requirementsOf(claim)
      const chosen = chooseVolume(claim, requirements, index, { isDelayed })
      if (!chosen && !isDelayed) claimWaker.addWaiting(requirements, claim.metadata.creationTimestamp ?? '')
      return chosen
    },
    unscheduledPods: () => unscheduledPodsOf(claim, context).map(({ metadata }) => metadata.name),
    isInProcess: (provisioner) =>
      inProcessProvisioners.some(({ name }) => name === provisioner) ||
      runningProvisioners.find(provisioner, annotationOf(claim, SELECTED_NODE)) !== undefined,
    isAttributesClassEnabled: gates.enabled('VolumeAttributesClass'),
    isProvisionedIoEnabled: gates.enabled('VolumeProvisionedIO'),
  })
}

const unscheduledPodsOf = (claim: Claim, context: BindingContext): Readonly<Stored<Pod>>[] =>
  activePodsOf(context, keyOfObject(claim)).filter(({ spec }) => !spec?.nodeName)

async function apply(action: ClaimAction, claim: Claim, context: BindingContext): Promise<Outcome> {
  const { events } = context
  switch (action.do) {
    case 'bind':
      return bind(action.volume, claim, context)
    case 'mark lost': {
      const status = statusWithoutVolume(claim, 'Lost')
      if (claim.status?.phase !== 'Lost') {
        await context.save(mergePatches(persistentVolumeClaimKind, claim, { status }))
        events.record(persistentVolumeClaimKind, claim, action.event)
      }
      return stuck(action.event.message, {
        waitsFor: { kind: persistentVolumeKind.kind, name: claim.spec?.volumeName ?? '' },
      })
    }
    case 'assign class':
      return assignClass(action.className, claim, context)
    case 'provision': {
      context.provisioningTimes.begin(keyOfObject(claim), action.provisioner)
      return requestVolume(action, claim, context)
    }
    case 'wait': {
      const phase = action.phase && statusWithoutVolume(claim, action.phase)
      // Add the condition only to a claim that waits for its first consumer. On other claims, set an existing one to
      // False.
      const onlyIfPresent = action.readiness?.status === 'False'
      const readiness = statusWithReadiness(claim, action.readiness, { nowMs: context.clock.nowMs(), onlyIfPresent })
      const status = phase || readiness ? { ...phase, ...readiness } : undefined
      return saveOrRecord(mergePatches(persistentVolumeClaimKind, claim, { status }), action, claim, context)
    }
    case 'read volume':
      throw new Error('planClaim requested a volume that was just read')
  }
}

type ProvisionAction = Extract<ClaimAction, { do: 'provision' }>

async function bind(volume: Volume, claim: Claim, context: BindingContext): Promise<Outcome> {
  const { index, provisioningTimes } = context
  const writes = bindingWrites(volume, claim)
  if (writes.length > 0) {
    const { name } = volume.metadata
    index.assume(name)
    try {
      await context.save(writes)
    } catch (error) {
      if (isConflict(error)) await readVolume(context, name)
      throw error
    } finally {
      index.release(name)
    }
  }
  provisioningTimes.end(keyOfObject(claim))
  return done
}

async function assignClass(storageClassName: string, claim: Claim, context: BindingContext): Promise<Outcome> {
  try {
    await context.save(mergePatches(persistentVolumeClaimKind, claim, { main: { spec: { storageClassName } } }))
    context.metrics?.countClassAssignment(true)
    return done // the change triggers the next reconcile
  } catch (error) {
    context.metrics?.countClassAssignment(false)
    throw error
  }
}

/**
 * Writes the name of the provisioner, in both spellings of the annotation, because some provisioners read only one of them. If
 * the provisioner runs in this process, the same write records its intent.
 */
async function requestVolume(action: ProvisionAction, claim: Claim, context: BindingContext): Promise<Outcome> {
  const { provisioner, readiness } = action
  const status = statusWithReadiness(claim, readiness, { nowMs: context.clock.nowMs(), onlyIfPresent: true })
  if (annotationOf(claim, PROVISIONER) === provisioner)
    return saveOrRecord(mergePatches(persistentVolumeClaimKind, claim, { status }), action, claim, context)
  const annotations = { [PROVISIONER]: provisioner, [PROVISIONER_BETA]: provisioner }
  const running = hasDataSource(claim)
    ? undefined
    : context.runningProvisioners.find(provisioner, annotationOf(claim, SELECTED_NODE))
  const finalizers = running && finalizersWith(running.intentFinalizer, claim)
  const writes = mergePatches(persistentVolumeClaimKind, claim, { main: { annotations, finalizers }, status })
  if (!finalizers) return saveOrRecord(writes, action, claim, context)
  running.expectIntent(claim)
  try {
    return await saveOrRecord(writes, action, claim, context)
  } catch (error) {
    running.forgetIntent(claim)
    throw error
  }
}

/**
 * Whether the volume is created from another one. The source may never become usable, and after a crash the provisioner could
 * then not repeat the request to find out that no volume exists: the finalizer would keep the claim.
 */
const hasDataSource = ({ spec }: Claim): boolean => (spec?.dataSource ?? spec?.dataSourceRef) !== undefined

/** Returns undefined if the claim has the finalizer: it is the intent of an earlier process, which may have created a volume. */
function finalizersWith(finalizer: string, { metadata: { finalizers = [] } }: Claim): readonly string[] | undefined {
  return finalizers.includes(finalizer) ? undefined : [...finalizers, finalizer]
}

/** An event about waiting for pods is recorded when one of them has had no node for this long. */
const SCHEDULING_MS = 5_000

/** Returns the time after which the event is recorded if the claim still waits for its pods; 0 if it has waited long enough. */
function eventDelayMs(claim: Claim, context: BindingContext): number {
  const createdMs = unscheduledPodsOf(claim, context).map(({ metadata }) =>
    Date.parse(metadata.creationTimestamp ?? ''),
  )
  const waitedMs = context.clock.nowMs() - Math.min(...createdMs)
  return waitedMs >= SCHEDULING_MS ? 0 : Math.min(SCHEDULING_MS, SCHEDULING_MS - waitedMs)
}

/** Records the event only if there is nothing to write. A write triggers another reconcile, which records the event. */
async function saveOrRecord(
  writes: readonly CommitWrite[],
  action: ProvisionAction | Extract<ClaimAction, { do: 'wait' }>,
  claim: Claim,
  context: BindingContext,
): Promise<Outcome> {
  const { message, event } = action
  const details = action.do === 'wait' && action.waitsFor ? { waitsFor: action.waitsFor } : undefined
  if (writes.length > 0) await context.save(writes)
  else if (event) {
    const delayMs = action.do === 'wait' && action.isUsuallyShort ? eventDelayMs(claim, context) : 0
    if (delayMs > 0) return retryAfter(delayMs, message, details)
    context.events.record(persistentVolumeClaimKind, claim, event)
  }
  return stuck(message, details)
}
