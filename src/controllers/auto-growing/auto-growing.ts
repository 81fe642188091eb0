// Grows claims whose volumes fill up, according to the annotation stowage.dev/auto-grow on the claim or its class. Checks
// each such claim at an interval with the usage that nodes have measured; volumes/auto-grow.ts plans the size, and
// ../expanding expands the claim like any other. One patch sets the size and records the growth, so that the cooldown
// survives restarts.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError, isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  backOff,
  checkAfter,
  createController,
  createEventRecorder,
  done,
  type EventRecorder,
  type Outcome,
  retryAfter,
  source,
  type WorkQueue,
} from '../../runtime/index.ts'
import { AUTO_GROW, AUTO_GROWN, type AutoGrowPlan, findPolicy, planAutoGrowth } from '../../volumes/auto-grow.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { UsageByClaim } from '../../volumes/volume-usage.ts'
import { explainShortage } from '../expanding/free-capacity.ts'

export interface AutoGrowingOptions extends ControllerDeps {
  /** Returns the nodes' measurements of mounted volumes. */
  readUsage(): Promise<UsageByClaim>
  /** Default: a recorder of the component `auto-growing`, which the controller runs itself. */
  readonly events?: EventRecorder
}

export interface AutoGrowingController {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const NAME = 'auto-growing'
const WORKERS = 4
/** Interval between two checks of a claim. Nodes measure volumes once per minute. */
const CHECK_INTERVAL_MS = 10_000
/** Interval between two attempts for a claim that should grow but cannot. */
const BLOCKED_RETRY_MS = 60_000
const BY_CLASS = 'auto-growing: class'

export function createAutoGrowingController(options: AutoGrowingOptions): AutoGrowingController {
  const { client, caches, clock, random, log, metrics } = options
  const [claims, classes] = [caches.of(persistentVolumeClaimKind), caches.of(storageClassKind)]
  const [volumes, drivers] = [caches.of(persistentVolumeKind), caches.of(csiDriverKind)]
  const capacities = caches.of(csiStorageCapacityKind)
  claims.addIndex(BY_CLASS, (claim) => [claimClassName(claim) ?? ''])
  const events = options.events ?? createEventRecorder({ client, clock, random, log, component: NAME })
  /** The last warning of each claim, kept to record it only once. */
  const warnings = new Map<ObjectKey, string>()

  const policyOf = (claim: Claim) => findPolicy(claim, classes.get({ name: claimClassName(claim) ?? '' }))

  function warnOnce(claim: Claim, reason: string, message: string): void {
    const key = keyOfObject(claim)
    if (warnings.get(key) === message) return
    warnings.set(key, message)
    events.record(persistentVolumeClaimKind, claim, { type: 'Warning', reason, message })
  }

  function shortageFor(claim: Claim, target: string): string | undefined {
    const volume = volumes.get({ name: claim.spec?.volumeName ?? '' })
    const tracksCapacity = drivers.get({ name: volume?.spec?.csi?.driver ?? '' })?.spec.storageCapacity
    if (!volume || !tracksCapacity) return undefined
    const className = volume.spec?.storageClassName
    return explainShortage(
      volume,
      target,
      capacities.list().filter(({ storageClassName }) => storageClassName === className),
    )
  }

  async function reconcileClaim(key: ObjectKey): Promise<Outcome> {
    const claim = claims.get(key)
    const found = claim && policyOf(claim)
    if (!claim || !found || found.is === 'none') {
      warnings.delete(key)
      return done
    }
    if (found.is === 'invalid') {
      warnOnce(claim, 'InvalidAutoGrow', found.message)
      return done // until the annotation changes
    }
    const plan = planAutoGrowth({
      claim,
      policy: found.policy,
      usage: (await options.readUsage()).get(key),
      allowsExpansion: classes.get({ name: claimClassName(claim) ?? '' })?.allowVolumeExpansion === true,
      shortageFor: (target) => shortageFor(claim, target),
      nowMs: clock.nowMs(),
    })
    return applyPlan(claim, plan)
  }

  async function applyPlan(claim: Claim, plan: AutoGrowPlan): Promise<Outcome> {
    switch (plan.do) {
      case 'nothing':
        warnings.delete(keyOfObject(claim))
        return checkAfter(CHECK_INTERVAL_MS, plan.message)
      case 'wait':
        return checkAfter(Math.min(plan.afterMs ?? CHECK_INTERVAL_MS, CHECK_INTERVAL_MS), plan.message)
      case 'stop':
        warnOnce(claim, 'AutoGrowLimitReached', plan.message)
        return retryAfter(BLOCKED_RETRY_MS, plan.message, { reason: 'AutoGrowLimitReached' })
      case 'lower':
      case 'grow':
        return setRequest(claim, plan)
    }
  }

  /** The patch fails if the claim has changed: a size that a user has set since is not overwritten. */
  async function setRequest(claim: Claim, plan: Extract<AutoGrowPlan, { do: 'grow' | 'lower' }>): Promise<Outcome> {
    const { to, record, message } = plan
    const { namespace, name, uid, resourceVersion } = claim.metadata
    const body = {
      metadata: { uid, resourceVersion, annotations: { [AUTO_GROWN]: record } },
      spec: { resources: { requests: { storage: to } } },
    }
    try {
      claims.applyWriteResult(
        await client.patch(persistentVolumeClaimKind, { namespace, name }, { type: 'merge', body }),
      )
    } catch (error) {
      if (isNotFound(error)) return done
      if (isConflict(error)) return backOff('the claim changed during the reconcile')
      if (!(error instanceof ApiError) || error.code >= 500 || error.code === 429) throw error
      // The server rejected the size, for example because of a quota or a limit range.
      const rejection = `${message} was rejected: ${error.message}`
      warnOnce(claim, 'AutoGrowRejected', rejection)
      return retryAfter(BLOCKED_RETRY_MS, rejection, { reason: 'AutoGrowRejected' })
    }
    if (plan.do === 'lower') warnOnce(claim, 'AutoGrowLimitReached', message)
    else {
      warnings.delete(keyOfObject(claim))
      events.record(persistentVolumeClaimKind, claim, { type: 'Normal', reason: 'AutoGrowing', message })
    }
    return checkAfter(CHECK_INTERVAL_MS, message)
  }

  const controller = createController({
    name: NAME,
    operation: { component: NAME, name: 'AutoGrow' },
    clock,
    random,
    log,
    workers: WORKERS,
    metrics,
    workerBudget: options.workerBudget,
    sources: [
      source({
        cache: claims,
        keysOf: (claim) => [keyOfObject(claim)],
        matters: (before, after) => autoGrowFields(before) !== autoGrowFields(after),
        mayNeedReconcile: (claim) => policyOf(claim).is !== 'none',
      }),
      source({
        cache: classes,
        keysOf: ({ metadata }) => claims.byIndex(BY_CLASS, metadata.name).map(keyOfObject),
      }),
    ],
    reconcile: reconcileClaim,
  })
  metrics?.queues.add(controller.queue)
  return {
    queues: [controller.queue],
    async run(signal) {
      const synced = await Promise.all([volumes, drivers, capacities].map((cache) => cache.whenSynced(signal)))
      if (!synced.every(Boolean)) return
      const recorderAbort = new AbortController()
      const recorderRun = options.events ? undefined : events.run(recorderAbort.signal)
      try {
        await controller.run(signal)
      } finally {
        recorderAbort.abort()
        await recorderRun
      }
    },
  }
}

/** A change to these fields starts a check immediately. Usage is not part of the object. */
const autoGrowFields = ({ metadata, status }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([metadata.annotations?.[AUTO_GROW], status?.phase])
