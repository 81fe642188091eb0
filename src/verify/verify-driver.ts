// Verifies a driver: reads its profile, runs the checks one after another, cleans up after each, and returns the report. It
// always terminates: calls and checks have deadlines, and the run ends if the driver no longer responds.
import { setMaxListeners } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { hashText, mixSeed, seededRandom } from '../base/seeded-random.ts'
import type { NodeGetInfoResponse } from '../csi/gen/csi_pb.js'
import { CsiError, createServiceClients, isUnimplemented, type Transport } from '../csi/index.ts'
import type { NodeDisk } from '../nodeagent/disk/disk.ts'
import { startBench } from './bench/bench.ts'
import { type CallLog, createCallLog } from './calls/call-log.ts'
import { createDriverLink, type DriverLink, type OpenDriver } from './calls/driver-link.ts'
import { createInventory, type Inventory } from './calls/inventory.ts'
import { removeLeftovers } from './calls/remove-leftovers.ts'
import { type Check, type CheckContext, type DriverControl, NotApplicable, Violation } from './check.ts'
import { type DriverProfile, explainUnmetNeed, readProfile } from './profile.ts'
import { type CheckResult, countStatuses, describeProfile, selectCallsToShow, type VerifyReport } from './report.ts'
import type { VerifySettings } from './settings.ts'
import { createVirtualClock } from './virtual-clock.ts'

export interface VerifyOptions {
  readonly csiAddress: string
  readonly controllerAddress?: string
  readonly checks: readonly Check[]
  readonly settings: VerifySettings
  readonly open: OpenDriver
  /** Present if verify started the driver. */
  readonly driverProcess?: DriverControl
  /** An empty directory for staged and published volumes. */
  readonly directory: string
  readonly disk: NodeDisk
  /** Real time. */
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called before each check. */
  onProgress?(check: Check, index: number): void
}

/** The driver cannot be verified at all, for example because it does not respond. */
export class CannotVerifyError extends Error {
  override readonly name = 'CannotVerifyError'
}

export async function verifyDriver(options: VerifyOptions): Promise<VerifyReport> {
  const { checks, settings, clock, signal, onProgress } = options
  const startMs = clock.monotonicMs()
  const log = createCallLog()
  const inventory = createInventory()
  const link = createDriverLink({ ...options, callTimeoutMs: settings.callTimeoutMs, log, inventory })
  try {
    const profile = await readDriver(link, signal)
    const run: Run = { ...options, log, inventory, link, profile, nodeInfo: await readNodeInfo(link, profile, signal) }
    const results: CheckResult[] = []
    const leftovers: string[] = []
    let stopped: string | undefined
    for (const [index, check] of checks.entries()) {
      if (signal.aborted) stopped ??= 'interrupted'
      if (stopped !== undefined) {
        results.push({ ...describeCheck(check), status: 'not run', message: stopped, durationMs: 0 })
        continue
      }
      onProgress?.(check, index)
      const result = await runCheck(check, index, run)
      results.push(result)
      if (result.status === 'violated' || result.status === 'advice') stopped = await findReasonToStop(run)
      leftovers.push(...(await cleanUp(run)))
    }
    return {
      driver: describeProfile(profile),
      seed: settings.seed,
      checks: results,
      counts: countStatuses(results),
      leftovers: [...leftovers, ...(await removeDirectory(options))].map(log.mask),
      ...(stopped === undefined ? {} : { stopped }),
      durationMs: Math.round(clock.monotonicMs() - startMs),
    }
  } finally {
    link.close()
  }
}

interface Run extends VerifyOptions {
  readonly log: CallLog
  readonly inventory: Inventory
  readonly link: DriverLink
  readonly profile: DriverProfile
  readonly nodeInfo: NodeGetInfoResponse | undefined
}

const describeCheck = ({ id, title, rule }: Check) => ({ id, title, rule })

/** Throws CannotVerifyError if the driver does not identify itself. */
async function readDriver({ send }: DriverLink, signal: AbortSignal): Promise<DriverProfile> {
  try {
    return await readProfile(createServiceClients(send), signal)
  } catch (error) {
    if (!(error instanceof CsiError)) throw error
    signal.throwIfAborted()
    if (isUnimplemented(error))
      throw new CannotVerifyError(
        `The driver does not serve the Identity service (${error.message}). Every CSI driver must serve GetPluginInfo.`,
      )
    throw new CannotVerifyError(
      `One of the first calls to the driver failed (GetPluginInfo, GetPluginCapabilities, ControllerGetCapabilities, ` +
        `NodeGetCapabilities): ${error.codeName} (${error.message})`,
    )
  }
}

async function readNodeInfo(
  { send }: DriverLink,
  { hasNode }: DriverProfile,
  signal: AbortSignal,
): Promise<NodeGetInfoResponse | undefined> {
  if (!hasNode) return undefined
  try {
    return await createServiceClients(send).node.nodeGetInfo({}, { signal })
  } catch (error) {
    if (error instanceof CsiError) return undefined // the check of NodeGetInfo reports it
    throw error
  }
}

async function runCheck(check: Check, index: number, run: Run): Promise<CheckResult> {
  const { profile, settings, clock, log, signal } = run
  const unmetNeed = explainUnmetNeed(check.needs ?? {}, {
    profile,
    settings,
    canRestart: run.driverProcess !== undefined,
  })
  if (unmetNeed) return { ...describeCheck(check), status: 'not applicable', message: unmetNeed, durationMs: 0 }
  const startMs = clock.monotonicMs()
  log.reset(startMs)
  const limit = new AbortController()
  const limitMs = settings.checkTimeoutMs * (check.needs?.restart ? RESTART_FACTOR : 1)
  const cancelLimit = clock.after(limitMs, () => limit.abort(new TimeLimitReached()))
  const stopSignal = AbortSignal.any([signal, limit.signal])
  setMaxListeners(0, stopSignal) // one listener per call
  const context = createContext(check, index, run, stopSignal)
  const end = (result: Pick<CheckResult, 'status' | 'message' | 'calls'>): CheckResult => ({
    ...describeCheck(check),
    ...result,
    durationMs: Math.round(clock.monotonicMs() - startMs),
  })
  try {
    await Promise.race([check.run(context), rejectOnAbort(limit.signal)])
    return end({ status: 'passed' })
  } catch (error) {
    if (signal.aborted) return end({ status: 'not run', message: 'interrupted' })
    if (error instanceof NotApplicable) return end({ status: 'not applicable', message: error.message })
    const message = limit.signal.aborted
      ? `the check did not end within ${limitMs / 1_000} s: the driver responds too slowly or not at all`
      : describeFailure(error)
    const calls = selectCallsToShow(log.calls(), context.usesBench())
    return end({ status: check.rule.level === 'must' ? 'violated' : 'advice', message: log.mask(message), calls })
  } finally {
    cancelLimit()
    limit.abort(new CheckEnded())
  }
}

/** A driver that is killed after every call may need seconds for each restart. */
const RESTART_FACTOR = 5

class TimeLimitReached extends Error {}
class CheckEnded extends Error {}

const rejectOnAbort = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )

/** Rethrows errors that are neither a violation nor a driver response: they are bugs in verify. */
function describeFailure(error: unknown): string {
  if (error instanceof Violation) return error.message
  if (error instanceof CsiError) return `unexpected error: ${error.codeName} (${error.message})`
  throw error
}

function createContext(check: Check, index: number, run: Run, signal: AbortSignal) {
  const { profile, nodeInfo, settings, clock, link, log, inventory, directory, disk, driverProcess } = run
  const seed = mixSeed(settings.seed, check.id)
  const random = seededRandom(seed)
  const pause = (ms: number) => clock.sleep(ms).then(() => undefined)
  const checkDirectory = join(directory, String(index))
  const namePrefix = `verify-${settings.seed.toString(36)}-${hashText(check.id, 0).toString(36)}`
  let nameCount = 0
  let directoryCount = 0
  let usesBench = false
  /** Components of an abandoned bench must not call the driver during a later check. */
  const send: Transport = async (method, request, options) => {
    if (signal.aborted) throw new CsiError('CANCELLED', `${method.name}: the check has ended`)
    return link.send(method, request, { ...options, signal: options.signal ?? signal })
  }
  const context: CheckContext & { usesBench(): boolean } = {
    profile,
    nodeInfo,
    settings,
    random,
    signal,
    driverProcess,
    pause,
    csi: createServiceClients(send),
    usesBench: () => usesBench,
    uniqueName: () => `${namePrefix}-${++nameCount}`,
    async makeDirectory() {
      const path = join(checkDirectory, String(++directoryCount))
      await mkdir(path, { recursive: true, mode: 0o750 })
      return path
    },
    leftovers: () => inventory.describe(),
    hasNodeVolumes: () => inventory.staged.size + inventory.published.size > 0,
    async startBench(benchOptions) {
      usesBench = true
      const root = await context.makeDirectory()
      const benchClock = createVirtualClock({ signal })
      return startBench(
        {
          ...{ send, clock: benchClock, random, log, driverProcess, pause },
          retryForMs: settings.callTimeoutMs,
          ...{ profile, settings, root, disk },
        },
        benchOptions,
      )
    },
  }
  return context
}

async function cleanUp({ inventory, link, settings, clock }: Run): Promise<string[]> {
  return removeLeftovers(inventory, {
    csi: createServiceClients(link.send),
    deleteSecrets: settings.secrets.DeleteVolumeSecret ?? settings.secrets.CreateVolumeSecret ?? {},
    unpublishSecrets:
      settings.secrets.ControllerUnpublishVolumeSecret ?? settings.secrets.ControllerPublishVolumeSecret ?? {},
    pause: (ms) => clock.sleep(ms).then(() => undefined),
  })
}

/** Returns a reason if the driver no longer responds. Restarts a driver that verify started. */
async function findReasonToStop({ link, driverProcess }: Run): Promise<string | undefined> {
  const probe = async () => {
    try {
      await createServiceClients(link.send).identity.probe({})
      return undefined
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      const isGone = error.codeName === 'UNAVAILABLE' || error.codeName === 'DEADLINE_EXCEEDED'
      return isGone ? `the driver no longer responds: ${error.message}` : undefined
    }
  }
  const reason = await probe()
  if (reason === undefined || !driverProcess) return reason
  try {
    await driverProcess.kill()
    await driverProcess.start()
  } catch (error) {
    return `${reason}; the driver could not be started again: ${(error as Error).message}`
  }
  return probe()
}

/** Unmounts everything below the directory and removes it. Returns the mounts that it found and what could not be removed. */
async function removeDirectory({ disk, directory }: VerifyOptions): Promise<string[]> {
  const problems: string[] = []
  for (const path of (await disk.mountsUnder(directory)).reverse()) {
    try {
      await disk.unmount(path)
      problems.push(`the driver left a mount at ${path}; verify unmounted it`)
    } catch (error) {
      problems.push(`${path} is still mounted: ${(error as Error).message}`)
    }
  }
  try {
    await disk.removeTree(directory)
  } catch (error) {
    problems.push((error as Error).message)
  }
  return problems
}
