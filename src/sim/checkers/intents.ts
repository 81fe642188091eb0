// Intent before effect: no driver is asked to make a volume before its claim says so.
import { INTENT_PREFIX } from '../../controllers/provisioning/intent.ts'
import type { DriverCall } from '../engine/system.ts'
import type { CheckContext } from './context.ts'

/** Volumes of claims are called after their uids. */
export const VOLUME_PREFIX = 'pvc-'
/**
 * Whoever looked before the intent was let go of may still ask: a leader knows for as long as its lease lasts that nobody
 * else works, and what it looked at may be as old.
 */
const LOOKED_MS_MAX = 30_000

export function checkIntents({ system, view, report }: CheckContext): void {
  const { world } = system.cluster
  /** By the claim's uid: since it was let go of, or that it is still held. */
  const intents = new Map<string, { heldUntilMs: number }>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'claim') continue
      const { uid = '' } = (change.next ?? change.old)!.metadata
      const isHeld = change.next?.metadata.finalizers?.some((one) => one.startsWith(INTENT_PREFIX)) ?? false
      const known = intents.get(uid)
      if (isHeld) intents.set(uid, { heldUntilMs: Number.POSITIVE_INFINITY })
      else if (known?.heldUntilMs === Number.POSITIVE_INFINITY) known.heldUntilMs = world.nowMs
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins' && call.method === 'CreateVolume') check(call)
  })

  function check({ process, driver, volume: name }: DriverCall): void {
    const intent = intents.get(name.slice(VOLUME_PREFIX.length))
    if (!name.startsWith(VOLUME_PREFIX) || !intent) {
      report('no intent', `${process} asks ${driver} to make ${name}, and no claim has ever said so`)
    } else if (intent.heldUntilMs < world.nowMs - LOOKED_MS_MAX) {
      const seconds = Math.round((world.nowMs - intent.heldUntilMs) / 1_000)
      report('no intent', `${process} asks ${driver} to make ${name}, which was let go of ${seconds} s ago`)
    }
  }
}
