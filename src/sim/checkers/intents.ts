// Rule `no intent`: CreateVolume is called only after the claim has the intent finalizer.
import { INTENT_PREFIX } from '../../controllers/provisioning/intent.ts'
import type { DriverCall } from '../engine/system.ts'
import type { CheckContext } from './context.ts'

/** Volumes are named after the uids of their claims. */
export const VOLUME_PREFIX = 'pvc-'
/**
 * A caller that read the claim before the intent was removed may still call the driver: a leader may act on what it read
 * for as long as its lease lasts.
 */
const STALE_MS_MAX = 30_000

export function checkIntents({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  /** By claim uid: when the intent was removed; infinity while it is held. */
  const intents = new Map<string, { heldUntilMs: number }>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'claim') continue
      const { uid = '' } = (change.next ?? change.old)!.metadata
      const isHeld = change.next?.metadata.finalizers?.some((finalizer) => finalizer.startsWith(INTENT_PREFIX)) ?? false
      const intent = intents.get(uid)
      if (isHeld) intents.set(uid, { heldUntilMs: Number.POSITIVE_INFINITY })
      else if (intent?.heldUntilMs === Number.POSITIVE_INFINITY) intent.heldUntilMs = simulation.nowMs
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins' && call.method === 'CreateVolume') checkCall(call)
  })

  function checkCall({ process, driver, volume: name }: DriverCall): void {
    const intent = intents.get(name.slice(VOLUME_PREFIX.length))
    if (!name.startsWith(VOLUME_PREFIX) || !intent) {
      report('no intent', `${process} asks ${driver} to create ${name}, for which no claim has an intent`)
    } else if (intent.heldUntilMs < simulation.nowMs - STALE_MS_MAX) {
      const seconds = Math.round((simulation.nowMs - intent.heldUntilMs) / 1_000)
      report('no intent', `${process} asks ${driver} to create ${name}, whose intent was removed ${seconds} s ago`)
    }
  }
}
