// One pass over a claim: read, plan, apply. Safe at any time, and after a crash between any two writes.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf, claimClassName } from '../../api/kinds/shared/class-names.ts'
import { effectiveDefaultClass } from '../../api/kinds/storage-class/default-class.ts'
import { type CommitWrite, keyOfObject, type ObjectKey, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { chooseVolume } from '../../volumes/choose-volume.ts'
import { type Claim, requirementsOf, type Volume } from '../../volumes/matching.ts'
import { PROVISIONER, PROVISIONER_BETA } from '../../volumes/names.ts'
import { bindingWrites } from './bind-claim.ts'
import { statusWithoutVolume } from './claim-status.ts'
import { type BindingContext, isConflict, isGone, podsOf, readClaim, readVolume } from './context.ts'
import { mergePatches } from './merge-patches.ts'
import { type ClaimAction, planClaim } from './plan-claim.ts'

/** Times a pass starts over at once because something changed under its hands; then it takes its turn again. */
const STARTS_MAX = 3

export async function reconcileClaim(key: ObjectKey, context: BindingContext): Promise<Outcome> {
  for (let starts = 1; ; starts++) {
    context.claimWaker.reconcileStarted(key)
    try {
      return await pass(key, context)
    } catch (error) {
      context.provisioning.failed(key)
      if (isGone(error)) return backOff('the claim or its volume was deleted meanwhile')
      if (!isConflict(error)) throw error
      if (starts >= STARTS_MAX) return backOff('the claim or its volume changed meanwhile')
      await readClaim(context, refOfKey(key))
    } finally {
      context.claimWaker.reconcileEnded(key)
    }
  }
}

async function pass(key: ObjectKey, context: BindingContext): Promise<Outcome> {
  const claim = context.claims.get(key)
  if (!claim) {
    context.provisioning.forget(key)
    return done // deleted meanwhile: nothing left to want
  }
  const name = claim.spec?.volumeName
  const action = plan(claim, { named: name ? context.volumes.get(name) : undefined, isSure: false }, context)
  if (action.do !== 'read its volume') return apply(action, claim, context)
  const named = await readVolume(context, name ?? '')
  return apply(plan(claim, { named, isSure: true }, context), claim, context)
}

function plan(
  claim: Claim,
  known: { readonly named: Volume | undefined; readonly isSure: boolean },
  context: BindingContext,
): ClaimAction {
  const { classes, index, inProcess, claimWaker, gates } = context
  const className = claimClassName(claim)
  return planClaim({
    claim,
    ...known,
    storageClass: className ? classes.get(className) : undefined,
    defaultClass: () => effectiveDefaultClass(classes.list()),
    choose({ isDelayed }) {
      const wish = requirementsOf(claim)
      const chosen = chooseVolume(claim, wish, index, { isDelayed })
      if (!chosen && !isDelayed) claimWaker.addWaiting(wish, claim.metadata.creationTimestamp ?? '')
      return chosen
    },
    unscheduledPods: () =>
      podsOf(context, keyOfObject(claim))
        .filter(({ spec }) => !spec?.nodeName)
        .map(({ metadata }) => metadata.name ?? ''),
    isInProcess: (provisioner) => inProcess.some(({ name }) => name === provisioner),
    bindsAttributesClasses: gates.enabled('VolumeAttributesClass'),
  })
}

async function apply(action: ClaimAction, claim: Claim, context: BindingContext): Promise<Outcome> {
  const { events } = context
  switch (action.do) {
    case 'bind':
      return bind(action.volume, claim, context)
    case 'give up': {
      const status = statusWithoutVolume(claim, 'Lost')
      if (claim.status?.phase !== 'Lost') {
        await context.save(mergePatches(persistentVolumeClaimKind, claim, { status }))
        events.record(persistentVolumeClaimKind, claim, action.tell)
      }
      return stuck(action.tell.message)
    }
    case 'assign class':
      return assignClass(action.className, claim, context)
    case 'ask': {
      context.provisioning.begin(keyOfObject(claim), action.provisioner)
      return saveOrTell(askingWrites(claim, action.provisioner), action, claim, context)
    }
    case 'wait': {
      const status = action.phase && statusWithoutVolume(claim, action.phase)
      return saveOrTell(mergePatches(persistentVolumeClaimKind, claim, { status }), action, claim, context)
    }
    case 'read its volume':
      throw new Error('a claim whose volume was read was planned to have it read again')
  }
}

async function bind(volume: Volume, claim: Claim, context: BindingContext): Promise<Outcome> {
  const { index, provisioning } = context
  const writes = bindingWrites(volume, claim)
  if (writes.length > 0) {
    const { name = '' } = volume.metadata
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
  provisioning.end(keyOfObject(claim))
  return done
}

async function assignClass(storageClassName: string, claim: Claim, context: BindingContext): Promise<Outcome> {
  try {
    await context.save(mergePatches(persistentVolumeClaimKind, claim, { main: { spec: { storageClassName } } }))
    context.metrics?.assignedDefaultClass(true)
    return done // the claim has changed, which begins its next pass
  } catch (error) {
    context.metrics?.assignedDefaultClass(false)
    throw error
  }
}

/** Both names of the annotation, as some provisioners know only one. */
function askingWrites(claim: Claim, provisioner: string): CommitWrite[] {
  if (annotationOf(claim, PROVISIONER) === provisioner) return []
  const annotations = { [PROVISIONER]: provisioner, [PROVISIONER_BETA]: provisioner }
  return mergePatches(persistentVolumeClaimKind, claim, { main: { annotations } })
}

/** A write begins another pass, so the event is left to the one that finds nothing more to write: it is told once. */
async function saveOrTell(
  writes: readonly CommitWrite[],
  { because, tell }: Extract<ClaimAction, { do: 'ask' | 'wait' }>,
  claim: Claim,
  context: BindingContext,
): Promise<Outcome> {
  if (writes.length > 0) await context.save(writes)
  else if (tell) context.events.record(persistentVolumeClaimKind, claim, tell)
  return stuck(because)
}
