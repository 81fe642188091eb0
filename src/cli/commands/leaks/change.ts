// Adopts or deletes leaks. Selects those that no operation in progress may own, checks again (after the grace period if the
// age of one is unknown), and changes only those that are still leaks. A check that is not recent is repeated before the next
// change, because deletions take time.

import { isAlreadyExists } from '../../../api/status-error.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { CsiError } from '../../../csi/index.ts'
import { type AdoptOptions, buildAdoptedVolume, chooseClass, createAdoptedVolume } from './adopt.ts'
import type { Leak } from './compare.ts'
import { checkOnce, confirmLeaks, type FindDeps, type FindOptions, keyOfLeak, type LeakCheck } from './find-leaks.ts'

export type ChangeAction = 'adopt' | 'delete'

export interface ChangeRequest extends FindOptions, AdoptOptions {
  readonly action: ChangeAction
}

export interface Change {
  readonly action: ChangeAction
  readonly leak: Leak
  readonly result: 'adopted' | 'deleted' | 'failed' | 'left'
  /** The PV of an adopted volume. */
  readonly pv?: string
  /** Why the change failed, or why the leak was skipped. */
  readonly message?: string
}

export interface ChangeDeps extends FindDeps {
  readonly client: Pick<Client, 'list' | 'create'>
  /** Called before the wait for the grace period. */
  onWait?(ms: number): void
  /** Called after each change. */
  onChange?(change: Change): void
}

const CHANGEABLE_REASONS: Readonly<Record<ChangeAction, ReadonlySet<Leak['reason']>>> = {
  adopt: new Set(['VolumeWithoutPV']),
  delete: new Set(['VolumeWithoutPV', 'SnapshotWithoutContent']),
}

/** A check that is older than this is repeated before the next change. */
const CHECK_AGE_MS_MAX = 1_000

/** Returns why the action skips the leak, or undefined if it does not. */
const leaveReasonOf = ({ leftBecause, notDeletedBecause }: Leak, action: ChangeAction): string | undefined =>
  leftBecause ?? (action === 'delete' ? notDeletedBecause : undefined)

/** Returns the leaks that the action may change. Throws UsageError if the user named others. */
export function selectCandidates(
  { report, cluster }: LeakCheck,
  { action, namedHandles, className }: ChangeRequest,
): Leak[] {
  const changeable = report.leaks.filter(({ reason }) => CHANGEABLE_REASONS[action].has(reason))
  for (const handle of namedHandles) {
    const leak = changeable.find((candidate) => candidate.handle === handle)
    if (!leak) throw new UsageError(`"${handle}" is not a leak that --${action} can change. Nothing was changed.`)
    const leaveReason = leaveReasonOf(leak, action)
    if (leaveReason !== undefined) throw new UsageError(`"${handle}" is left: ${leaveReason}. Nothing was changed.`)
  }
  const candidates = changeable.filter(
    (leak) =>
      leaveReasonOf(leak, action) === undefined && (namedHandles.size === 0 || namedHandles.has(leak.handle ?? '')),
  )
  if (action === 'adopt') for (const { driver } of candidates) chooseClass(driver, cluster, className)
  return candidates
}

export async function changeLeaks(
  candidates: readonly Leak[],
  request: ChangeRequest,
  deps: ChangeDeps,
): Promise<readonly Change[]> {
  const { clock, signal } = deps
  // The driver may have created a volume of unknown age just before the check.
  const waits = candidates.some(({ createdAt }) => createdAt === undefined) && request.gracePeriodMs > 0
  if (waits) {
    deps.onWait?.(request.gracePeriodMs)
    await clock.sleep(request.gracePeriodMs, signal)
  }
  const changes: Change[] = []
  let recent:
    | { readonly check: LeakCheck; readonly current: ReadonlyMap<string, Leak>; readonly endMs: number }
    | undefined
  for (const leak of candidates) {
    if (!recent || clock.monotonicMs() - recent.endMs > CHECK_AGE_MS_MAX) {
      const check = confirmLeaks(candidates, await checkOnce(deps, request))
      const current = new Map(check.report.leaks.map((found) => [keyOfLeak(found), found]))
      recent = { check, current, endMs: clock.monotonicMs() }
    }
    const change = await changeLeak(leak, recent.current.get(keyOfLeak(leak)), { request, deps, check: recent.check })
    changes.push(change)
    deps.onChange?.(change)
  }
  return changes
}

interface ChangeContext {
  readonly request: ChangeRequest
  readonly deps: ChangeDeps
  readonly check: LeakCheck
}

async function changeLeak(
  leak: Leak,
  current: Leak | undefined,
  { request, deps, check }: ChangeContext,
): Promise<Change> {
  const { action } = request
  if (!current) {
    const kind = leak.reason === 'VolumeWithoutPV' ? 'volume' : 'snapshot'
    return { action, leak, result: 'left', message: `the ${kind} is no longer a leak` }
  }
  const leaveReason = leaveReasonOf(current, action)
  if (leaveReason !== undefined) return { action, leak, result: 'left', message: leaveReason }
  return action === 'adopt' ? adoptVolume(leak, { request, deps, check }) : deleteLeak(leak, { request, deps, check })
}

async function adoptVolume(leak: Leak, { request, deps, check }: ChangeContext): Promise<Change> {
  const inventory = check.inventories.find(({ driver }) => driver === leak.driver)!
  const volume = inventory.volumes!.get(leak.handle!)!
  const className = chooseClass(leak.driver, check.cluster, request.className)
  const pv = buildAdoptedVolume(inventory, volume, check.machine, { ...request, className })
  const toFailedChange = (message: string): Change => ({ action: 'adopt', leak, result: 'failed', message })
  if ('problem' in pv) return toFailedChange(pv.problem)
  try {
    const { metadata } = await createAdoptedVolume(deps.client, pv, { dryRun: false, signal: deps.signal })
    return { action: 'adopt', leak, result: 'adopted', pv: metadata.name }
  } catch (error) {
    if (deps.signal.aborted) throw error
    return toFailedChange(isAlreadyExists(error) ? `a PV named ${pv.metadata.name} exists` : (error as Error).message)
  }
}

/** A deletion that takes longer counts as failed; the driver may still complete it. */
const DELETE_TIMEOUT_MS = 120_000

async function deleteLeak(leak: Leak, { deps, check }: ChangeContext): Promise<Change> {
  const inventory = check.inventories.find(({ driver }) => driver === leak.driver)!
  const isVolume = leak.reason === 'VolumeWithoutPV'
  const { controller } = (isVolume ? inventory.volumes! : inventory.snapshots!).get(leak.handle!)!.process.driver
  const options = { timeoutMs: DELETE_TIMEOUT_MS, signal: deps.signal }
  try {
    if (isVolume) await controller.deleteVolume({ volumeId: leak.handle! }, options)
    else await controller.deleteSnapshot({ snapshotId: leak.handle! }, options)
    return { action: 'delete', leak, result: 'deleted' }
  } catch (error) {
    if (deps.signal.aborted) throw error
    const code = error instanceof CsiError ? `${error.codeName}: ` : ''
    return { action: 'delete', leak, result: 'failed', message: `${code}${(error as Error).message}` }
  }
}
