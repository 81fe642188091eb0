// Reconciles one volume: read, plan (plan-volume.ts), apply. Safe at any time and after a crash between any two writes.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { type Claim, claimKeyOf, type Volume } from '../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { type BindingContext, podsOf, readClaim, readVolume } from './context.ts'
import { modeMismatchOnClaim, modeMismatchOnVolume } from './events.ts'
import { mergePatches, type PatchParts } from './merge-patches.ts'
import type { Reclaim } from './plan-reclaim.ts'
import { planVolume, type VolumeAction } from './plan-volume.ts'
import { phasePatch } from './volume-status.ts'

/** Attempts in a row when an object changes during the reconcile; then the volume is requeued with backoff. */
const ATTEMPTS_MAX = 3

export async function reconcileVolume(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptVolume(name, context)
    } catch (error) {
      if (isNotFound(error)) return backOff('the volume was deleted during the reconcile')
      if (!isConflict(error)) throw error
      if (attempt >= ATTEMPTS_MAX) return backOff('the volume changed during the reconcile')
      await readVolume(context, name)
    }
  }
}

async function attemptVolume(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  const volume = context.volumes.get(name)
  if (!volume) {
    context.deleting.end(name)
    return done
  }
  const claimKey = claimKeyOf(volume)
  const cached = claimKey === undefined ? undefined : context.claims.get(claimKey)
  const action = plan(volume, { claim: cached, isLive: false }, context)
  if (action.do !== 'read its claim') return apply(action, volume, context)
  const claim = await readClaim(context, refOfKey(claimKey ?? ''))
  return apply(plan(volume, { claim, isLive: true }, context), volume, context)
}

function plan(
  volume: Volume,
  known: { readonly claim: Claim | undefined; readonly isLive: boolean },
  context: BindingContext,
): VolumeAction {
  return planVolume({
    volume,
    ...known,
    inProcess: context.inProcess,
    // If a claim of that name exists but is not this volume's, its pods use its own volume.
    activePods: () => (known.claim ? [] : podsOf(context, claimKeyOf(volume) ?? '').map(keyOfObject)),
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
      await context.save(mergePatches(persistentVolumeKind, volume, { main: clearedClaimRef(volume, action), status }))
      return done
    }
    case 'withhold': {
      const status = phasePatch(volume, 'Released')
      if (status) await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, action.event)
      return stuck(action.event.message)
    }
    case 'report mismatch':
      events.record(persistentVolumeKind, volume, modeMismatchOnVolume(action.claim.metadata.name))
      events.record(persistentVolumeClaimKind, action.claim, modeMismatchOnClaim(volume.metadata.name))
      return stuck(action.because)
    case 'reclaim':
      return reclaim(action.how, volume, context)
    case 'wait':
      return stuck(action.because)
    case 'read its claim':
      throw new Error('planVolume requested a claim that was just read')
  }
}

/** Free again, or with `keepsName`, because a user chose the claim, reserved for any claim of that name. */
function clearedClaimRef(volume: Volume, { keepsName }: { readonly keepsName: boolean }): PatchParts {
  if (keepsName) return { spec: { claimRef: { uid: null, resourceVersion: null } } }
  const isMarked = annotationOf(volume, BOUND_BY_CONTROLLER) !== undefined
  return { spec: { claimRef: null }, ...(isMarked ? { annotations: { [BOUND_BY_CONTROLLER]: null } } : {}) }
}

async function reclaim(how: Reclaim, volume: Volume, context: BindingContext): Promise<Outcome> {
  const { events, deleting } = context
  switch (how.is) {
    case 'delegated':
      if (how.to !== undefined) deleting.begin(volume.metadata.name, how.to)
      return stuck(how.because)
    case 'blocked':
      events.record(persistentVolumeKind, volume, how.event)
      return stuck(how.event.message)
    case 'failed': {
      const status = phasePatch(volume, 'Failed', how.event.message)
      if (!status) return stuck(how.event.message)
      await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, how.event)
      if (volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
        deleting.begin(volume.metadata.name, 'N/A')
        deleting.failed(volume.metadata.name)
      }
      return stuck(how.event.message)
    }
  }
}
