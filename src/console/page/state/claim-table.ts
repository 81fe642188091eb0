// Joins claims, pods, usage and causes into the rows of the claims table, and counts them by status, tone, namespace, class and
// node. A change of a source updates only the affected rows.
import { effect, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { DfClaim, WhyLine } from '../../protocol.ts'
import { type ClaimView, joinClaim } from '../logic/claim-view.ts'
import type { RowChange } from '../logic/sorted-view.ts'
import { Tally } from '../logic/tally.ts'
import type { ClaimRow } from '../rows/claim.ts'
import { isUsingClaims, type PodRow } from '../rows/pod.ts'
import { claims, pods } from './collections.ts'
import { usageByClaim, whyLines } from './data.ts'
import { scheduleFlush } from './scheduler.ts'

const NO_PODS: readonly PodRow[] = []
const keyOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => `${namespace}/${name}`

export const claimViews = new Map<string, ClaimView>()
/** Changes with every flush in which rows have changed. */
export const claimViewsVersion = signal(0)
export const claimTallies = {
  status: new Tally<ClaimView>(({ status }) => status.word),
  tone: new Tally<ClaimView>(({ status }) => status.tone),
  namespace: new Tally<ClaimView>(({ namespace }) => namespace),
  class: new Tally<ClaimView>(({ claim }) => claim.className ?? ''),
  node: new Tally<ClaimView>(({ node }) => node ?? ''),
}

const uidByKey = new Map<string, string>()
const podsByClaim = new Map<string, readonly PodRow[]>()
let usages: ReadonlyMap<string, DfClaim> = new Map()
let lines: ReadonlyMap<string, WhyLine> = new Map()
const changedUids = new Set<string>()
const listeners = new Set<(changes: readonly RowChange<ClaimView>[]) => void>()

export const viewOfClaim = (key: string): ClaimView | undefined => claimViews.get(uidByKey.get(key) ?? '')
const podsOfClaim = (key: string): readonly PodRow[] => podsByClaim.get(key) ?? NO_PODS

/** Calls the listener with the changes of each flush. Returns a function that ends it. */
export function onClaimChanges(listener: (changes: readonly RowChange<ClaimView>[]) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function touch(uid: string | undefined): void {
  if (uid === undefined) return
  changedUids.add(uid)
  scheduleFlush(flush)
}

/**
 * The maximum number of rows joined in one flush; the rest wait for the next flush, so that a response with 50,000 claims does
 * not block the page.
 */
const ROWS_PER_FLUSH = 2_000

function flush(): void {
  const changes: RowChange<ClaimView>[] = []
  for (const uid of changedUids) {
    if (changes.length === ROWS_PER_FLUSH) {
      scheduleFlush(flush)
      break
    }
    changedUids.delete(uid)
    const before = claimViews.get(uid)
    const claim = claims.rows.get(uid)
    const after = claim && join(claim)
    if (after) claimViews.set(uid, after)
    else claimViews.delete(uid)
    for (const tally of Object.values(claimTallies)) tally.change(before, after)
    changes.push({ ...(before ? { before } : {}), ...(after ? { after } : {}) })
  }
  if (changes.length === 0) return
  for (const listener of listeners) listener(changes)
  claimViewsVersion.value++
}

function join(claim: ClaimRow): ClaimView {
  const key = keyOf(claim)
  return joinClaim(claim, { why: lines.get(claim.uid), usage: usages.get(key), pods: podsOfClaim(key) })
}

claims.onChange(({ before, after }) => {
  if (after) uidByKey.set(keyOf(after), after.uid)
  // A new claim with the same name may have arrived before the deletion of the old one.
  else if (before && uidByKey.get(keyOf(before)) === before.uid) uidByKey.delete(keyOf(before))
  touch((after ?? before)?.uid)
})

pods.onChange(({ before, after }) => {
  for (const name of before?.claims ?? []) changePods(`${before!.namespace}/${name}`, before!.uid, undefined)
  if (!after || !isUsingClaims(after)) return
  for (const name of after.claims) changePods(`${after.namespace}/${name}`, after.uid, after)
})

function changePods(key: string, uid: string, pod: PodRow | undefined): void {
  const others = podsOfClaim(key).filter((other) => other.uid !== uid)
  const next = pod ? [...others, pod] : others
  if (next.length === 0) podsByClaim.delete(key)
  else podsByClaim.set(key, next)
  touch(uidByKey.get(key))
}

effect(() => {
  const { value } = usageByClaim.state.value
  if (!value) return
  const next = new Map(value.items.map((usage) => [`${usage.namespace}/${usage.claim}`, usage]))
  for (const [key, usage] of next) {
    const known = usages.get(key)
    if (known && isSameUsage(known, usage)) (next as Map<string, DfClaim>).set(key, known)
    else touch(uidByKey.get(key))
  }
  for (const key of usages.keys()) if (!next.has(key)) touch(uidByKey.get(key))
  usages = next
})

const isSameUsage = (a: DfClaim, b: DfClaim): boolean =>
  a.usedBytes === b.usedBytes &&
  a.capacityBytes === b.capacityBytes &&
  a.iops === b.iops &&
  a.throughputBytes === b.throughputBytes &&
  a.node === b.node &&
  a.unknownReason === b.unknownReason

effect(() => {
  const { value } = whyLines.state.value
  if (!value) return
  const next = new Map(value.lines.map((line) => [line.uid, line]))
  for (const [uid, line] of next) {
    const known = lines.get(uid)
    if (known && known.state === line.state && known.message === line.message && known.reason === line.reason)
      next.set(uid, known)
    else touch(uid)
  }
  for (const uid of lines.keys()) if (!next.has(uid)) touch(uid)
  lines = next
})

/** Delay between a change of claims and reading the causes, so that they are read once for a burst of changes. */
const WHY_REFRESH_DELAY_MS = 400

/** Watches claims and pods, and reads usage and causes, while the component is mounted. */
export function useClaimTable(): void {
  useEffect(() => {
    const releases = [claims.use(), pods.use(), usageByClaim.use(), whyLines.use()]
    let timer: ReturnType<typeof setTimeout> | undefined
    const endRefresh = claims.onChange(({ before, after }) => {
      const isNotReady = (claim: ClaimRow | undefined) => claim !== undefined && claim.phase !== 'Bound'
      if (!isNotReady(before) && !isNotReady(after) && before?.resizeStatus === after?.resizeStatus) return
      timer ??= setTimeout(() => {
        timer = undefined
        whyLines.refresh()
      }, WHY_REFRESH_DELAY_MS)
    })
    return () => {
      for (const release of releases) release()
      endRefresh()
      clearTimeout(timer)
    }
  }, [])
}
