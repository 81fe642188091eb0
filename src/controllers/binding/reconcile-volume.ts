// Reconciles one volume: reads, plans (plan-volume.ts) and applies. The process may crash between any two
// writes, so each of them can be repeated.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { type Claim, claimKeyOf, type Volume } from '../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { activePodsOf, type BindingContext, readClaim, readVolume } from './context.ts'
import { modeMismatchOnClaim, modeMismatchOnVolume } from './events.ts'
import { mergePatches, type ObjectPatch } from './merge-patches.ts'
import type { Reclaim } from './plan-reclaim.ts'
import { planVolume, type VolumeAction } from './plan-volume.ts'
import { phasePatch } from './volume-status.ts'

/** Attempts if an object changes during the reconcile. After the last one the volume is requeued with backoff. */
const ATTEMPTS_MAX = 3

export async function reconcileVolume(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await reconcileVolumeOnce(name, context)
    } catch (error) {
      if (isNotFound(error)) return backOff('the volume was deleted during the reconcile')
      if (!isConflict(error)) throw error
      if (attempt >= ATTEMPTS_MAX) return backOff('the volume changed during the reconcile')
      await readVolume(context, name)
    }
  }
}

/** Whether the volume is bound to its claim and has the phase Bound. */
export function isVolumeSettled(name: ObjectKey, { volumes, claims }: BindingContext): boolean {
  const volume = volumes.get(name)
  const uid = volume?.spec?.claimRef?.uid
  if (!volume || !uid || phasePatch(volume, 'Bound')) return false
  const claim = claims.get(claimKeyOf(volume))
  return claim?.metadata.uid === uid && claim.spec?.volumeName === volume.metadata.name
}

async function reconcileVolumeOnce(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  const volume = context.volumes.get(name)
  if (!volume) {
    context.deletionTimes.end(name)
    return done
  }
  const claimKey = claimKeyOf(volume)
  const cachedClaim = claimKey === undefined ? undefined : context.claims.get(claimKey)
  const action = plan(volume, { claim: cachedClaim, isLive: false }, context)
  if (action.do !== 'read claim') return apply(action, volume, context)
  const claim = await readClaim(context, refOfKey(claimKey ?? ''))
  return apply(plan(volume, { claim, isLive: true }, context), volume, context)
}

function plan(
  volume: Volume,
  lookup: { readonly claim: Claim | undefined; readonly isLive: boolean },
  context: BindingContext,
): VolumeAction {
  return planVolume({
    volume,
    ...lookup,
    inProcessProvisioners: context.inProcessProvisioners,
    // Pods of an existing claim with that name use that claim's volume, not this one.
    activePods: () => (lookup.claim ? [] : activePodsOf(context, claimKeyOf(volume) ?? '').map(keyOfObject)),
  })
}

async function apply(action: VolumeAction, volume: Volume, context: BindingContext): Promise<Outcome> {
  const { events } = context
  switch (action.do) {
    case 'set phase': {
      const status = phasePatch(volume, action.phase)
      if (status) await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      return done
    }
    case 'clear claimRef': {
      const status = phasePatch(volume, 'Available')
      await context.save(
        mergePatches(persistentVolumeKind, volume, { main: buildClaimRefRemoval(volume, action), status }),
      )
      return done
    }
    case 'prevent binding': {
      const status = phasePatch(volume, 'Released')
      if (status) await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, action.event)
      return stuck(action.event.message)
    }
    case 'report mismatch':
      events.record(persistentVolumeKind, volume, modeMismatchOnVolume(action.claim.metadata.name))
      events.record(persistentVolumeClaimKind, action.claim, modeMismatchOnClaim(volume.metadata.name))
      return stuck(action.message)
    case 'reclaim':
      return reclaim(action.reclaim, volume, context)
    case 'wait':
      return stuck(action.message)
    case 'read claim':
      throw new Error('planVolume requested a claim that was just read')
  }
}

/** Returns a patch that frees the volume, or with `keepsName` keeps it reserved for any claim with that name. */
function buildClaimRefRemoval(volume: Volume, { keepsName }: { readonly keepsName: boolean }): ObjectPatch {
  if (keepsName) return { spec: { claimRef: { uid: null, resourceVersion: null } } }
  const isBoundByController = annotationOf(volume, BOUND_BY_CONTROLLER) !== undefined
  return { spec: { claimRef: null }, ...(isBoundByController ? { annotations: { [BOUND_BY_CONTROLLER]: null } } : {}) }
}

async function reclaim(reclaimPlan: Reclaim, volume: Volume, context: BindingContext): Promise<Outcome> {
  const { events, deletionTimes } = context
  switch (reclaimPlan.is) {
    case 'delegated':
      if (reclaimPlan.provisioner !== undefined) deletionTimes.begin(volume.metadata.name, reclaimPlan.provisioner)
      return stuck(reclaimPlan.message)
    case 'blocked':
      events.record(persistentVolumeKind, volume, reclaimPlan.event)
      return stuck(reclaimPlan.event.message)
    case 'failed': {
      const status = phasePatch(volume, 'Failed', reclaimPlan.event.message)
      if (!status) return stuck(reclaimPlan.event.message)
      await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, reclaimPlan.event)
      if (volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
        deletionTimes.begin(volume.metadata.name, 'N/A')
        deletionTimes.countError(volume.metadata.name)
      }
      return stuck(reclaimPlan.event.message)
    }
  }
}
