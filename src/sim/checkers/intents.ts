// Rule `no intent`: CreateVolume is called only after the intent is recorded, as a finalizer of the claim or in a journal.

import { parseEntries } from '../../controllers/provisioning/intent-entries.ts'
import { INTENTS_ANNOTATION } from '../../controllers/provisioning/intent-journal.ts'
import { INTENT_PREFIX } from '../../volumes/provisioning-intent.ts'
import type { DriverCall } from '../engine/system.ts'
import type { ObjectOf, View } from '../engine/view.ts'
import type { CheckContext } from './context.ts'

/** Volumes are named after the uids of their claims. */
export const VOLUME_PREFIX = 'pvc-'
/**
 * A caller that read the claim before the intent was removed may still call the driver: a leader may act on data that it read
 * for as long as its lease lasts.
 */
const STALE_MS_MAX = 30_000

export function checkIntents({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  /**
   * By claim uid: the claims and leases that record the intent, and when the last record was removed (infinity while one exists).
   */
  const intents = new Map<string, { readonly records: Set<string>; recordedUntilMs: number }>()

  function setRecorded(uid: string, record: string, isRecorded: boolean): void {
    const intent = intents.get(uid) ?? { records: new Set(), recordedUntilMs: Number.POSITIVE_INFINITY }
    if (isRecorded) intents.set(uid, intent)
    if (isRecorded) intent.records.add(record)
    else if (!intent.records.delete(record)) return
    intent.recordedUntilMs = intent.records.size > 0 ? Number.POSITIVE_INFINITY : simulation.nowMs
  }

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'claim') {
        const { uid = '' } = (change.next ?? change.old)!.metadata
        setRecorded(uid, 'claim', change.next ? hasFinalizer(change.next) : false)
      } else if (change.of === 'lease') {
        const uids = listJournaledUids(change.next)
        for (const uid of listJournaledUids(change.old)) if (!uids.has(uid)) setRecorded(uid, change.key, false)
        for (const uid of uids) setRecorded(uid, change.key, true)
      }
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins' && call.method === 'CreateVolume') checkCall(call)
  })

  function checkCall({ process, driver, volume: name }: DriverCall): void {
    const intent = intents.get(name.slice(VOLUME_PREFIX.length))
    if (!name.startsWith(VOLUME_PREFIX) || !intent) {
      report('no intent', `${process} calls CreateVolume of ${driver} for ${name}, for which no claim has an intent`)
    } else if (intent.recordedUntilMs < simulation.nowMs - STALE_MS_MAX) {
      const seconds = Math.round((simulation.nowMs - intent.recordedUntilMs) / 1_000)
      report(
        'no intent',
        `${process} calls CreateVolume of ${driver} for ${name}, whose intent was removed ${seconds} s ago`,
      )
    }
  }
}

/** Whether the intent of the claim with this uid is recorded now. */
export function isIntended(uid: string, view: View): boolean {
  const claim = view.claimOfUid(uid)
  if (claim && hasFinalizer(claim)) return true
  return [...view.leases.values()].some((lease) => listJournaledUids(lease).has(uid))
}

/** Returns the uids of the claims whose intents a lease records. */
export const listJournaledUids = (lease: ObjectOf<'lease'> | undefined): ReadonlySet<string> =>
  new Set(parseEntries(lease?.metadata.annotations?.[INTENTS_ANNOTATION], 'a lease').keys())

const hasFinalizer = ({ metadata }: ObjectOf<'claim'>): boolean =>
  metadata.finalizers?.some((finalizer) => finalizer.startsWith(INTENT_PREFIX)) ?? false
