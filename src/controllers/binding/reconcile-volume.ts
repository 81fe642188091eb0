// One pass over a volume: read, plan, apply. Safe at any time, and after a crash between any two writes.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { type Claim, claimKeyOf, type Volume } from '../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { type BindingContext, isConflict, isGone, podsOf, readClaim, readVolume } from './context.ts'
import { modeMismatchOnClaim, modeMismatchOnVolume } from './events.ts'
import { mergePatches, type PatchParts } from './merge-patches.ts'
import type { Reclaim } from './plan-reclaim.ts'
import { planVolume, type VolumeAction } from './plan-volume.ts'
import { phasePatch } from './volume-status.ts'

/** Times a pass starts over at once because something changed under its hands; then it takes its turn again. */
const STARTS_MAX = 3

export async function reconcileVolume(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  for (let starts = 1; ; starts++) {
    try {
      return await pass(name, context)
    } catch (error) {
      if (isGone(error)) return backOff('it was deleted meanwhile')
      if (!isConflict(error)) throw error
      if (starts >= STARTS_MAX) return backOff('it changed meanwhile')
      await readVolume(context, name)
    }
  }
}

async function pass(name: ObjectKey, context: BindingContext): Promise<Outcome> {
  const volume = context.volumes.get(name)
  if (!volume) {
    context.deleting.end(name)
    return done // deleted meanwhile
  }
  const claimKey = claimKeyOf(volume)
  const cached = claimKey === undefined ? undefined : context.claims.get(claimKey)
  const action = plan(volume, { claim: cached, isSure: false }, context)
  if (action.do !== 'read its claim') return apply(action, volume, context)
  const claim = await readClaim(context, refOfKey(claimKey ?? ''))
  return apply(plan(volume, { claim, isSure: true }, context), volume, context)
}

function plan(
  volume: Volume,
  known: { readonly claim: Claim | undefined; readonly isSure: boolean },
  context: BindingContext,
): VolumeAction {
  return planVolume({
    volume,
    ...known,
    inProcess: context.inProcess,
    // A claim of that name which is not the volume's own has a volume of its own for its pods.
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
    case 'give back': {
      const status = phasePatch(volume, 'Available')
      await context.save(mergePatches(persistentVolumeKind, volume, { main: givenBack(volume, action), status }))
      return done
    }
    case 'hold back': {
      const status = phasePatch(volume, 'Released')
      if (status) await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, action.tell)
      return stuck(action.tell.message)
    }
    case 'tell of mismatch':
      events.record(persistentVolumeKind, volume, modeMismatchOnVolume(action.claim.metadata.name ?? ''))
      events.record(persistentVolumeClaimKind, action.claim, modeMismatchOnClaim(volume.metadata.name ?? ''))
      return stuck(action.because)
    case 'reclaim':
      return reclaim(action.how, volume, context)
    case 'wait':
      return stuck(action.because)
    case 'read its claim':
      throw new Error('a volume whose claim was read was planned to have it read again')
  }
}

/** Free for anyone again, or, where its claim was chosen by a user, for any claim of that name. */
function givenBack(volume: Volume, { keepsName }: { readonly keepsName: boolean }): PatchParts {
  if (keepsName) return { spec: { claimRef: { uid: null, resourceVersion: null } } }
  const isMarked = annotationOf(volume, BOUND_BY_CONTROLLER) !== undefined
  return { spec: { claimRef: null }, ...(isMarked ? { annotations: { [BOUND_BY_CONTROLLER]: null } } : {}) }
}

async function reclaim(how: Reclaim, volume: Volume, context: BindingContext): Promise<Outcome> {
  const { events, deleting } = context
  switch (how.is) {
    case 'left':
      if (how.to !== undefined) deleting.begin(volume.metadata.name ?? '', how.to)
      return stuck(how.because)
    case 'held':
      events.record(persistentVolumeKind, volume, how.tell)
      return stuck(how.tell.message)
    case 'impossible': {
      const status = phasePatch(volume, 'Failed', how.tell.message)
      if (!status) return stuck(how.tell.message)
      await context.save(mergePatches(persistentVolumeKind, volume, { status }))
      events.record(persistentVolumeKind, volume, how.tell)
      if (volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
        deleting.begin(volume.metadata.name ?? '', 'N/A')
        deleting.failed(volume.metadata.name ?? '')
      }
      return stuck(how.tell.message)
    }
  }
}
