// Runs `stowage reset`: plans what to delete, and then stops the server, releases the machine and deletes the data. Every
// step may be repeated, so a reset that was interrupted is completed by the next one.
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { removeTree } from '../../../base/trees/remove-tree.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { findRunningServer, readServerRecord } from '../../../processes/server/server-record.ts'
import { storeDirOf } from '../../../processes/store-location.ts'
import { lockDirectory } from '../../../store/files/directory-lock.ts'
import { readAddedContexts, removeAddedContexts } from '../kubeconfig/merge.ts'
import { requireUnusedStore, sendSignal, waitForExit } from '../stop/stop-server.ts'
import { deleteData, findForeignEntries, isDataDirectory, listNames } from './data-files.ts'
import { readMachineState } from './machine-state.ts'
import { type ReleaseCounts, releaseMachine, requireNoForeignMounts } from './release-machine.ts'
import { readStoredObjects } from './stored-objects.ts'
import { findVolumes, type StoreContent, type VolumeOnDisk } from './volumes-on-disk.ts'

export interface ResetOptions {
  readonly dataDir: string
  /** Whether to delete the volumes that are otherwise kept. */
  readonly includesRetained: boolean
  readonly clock: Clock
}

export interface ResetPlan {
  /** Path with symbolic links resolved. */
  readonly dataDir: string
  /** Whether there is nothing to stop, release or delete. */
  readonly isEmpty: boolean
  readonly serverPid?: number
  readonly processes: readonly { readonly pid: number; readonly command: string }[]
  readonly mounts: readonly string[]
  readonly loopDevices: readonly string[]
  readonly deletedVolumes: readonly VolumeOnDisk[]
  readonly keptVolumes: readonly VolumeOnDisk[]
  /** Contexts that `stowage kubeconfig --merge` has added. */
  readonly contexts: readonly { readonly file: string; readonly context: string }[]
  /** Entries of the data directory that Stowage did not create and a reset leaves. */
  readonly foreignEntries: readonly string[]
  /** Directory of the credentials, if it is outside the data directory: a reset leaves it. */
  readonly outerPkiDir?: string
}

/** The time after SIGTERM until the server is killed. */
const STOP_MS_MAX = 30_000
const KILL_MS_MAX = 5_000

/**
 * Changes nothing. Throws if the directory has entries with names of a data directory but is not one, or if another program has
 * mounted something in it.
 */
export async function planReset(options: ResetOptions): Promise<ResetPlan> {
  const dataDir = await realpath(options.dataDir).catch(() => options.dataDir)
  const state = await readMachineState(dataDir)
  requireNoForeignMounts(state)
  const { processes, mounts, loops } = state
  const names = await listNames(dataDir)
  const foreignEntries = await findForeignEntries(dataDir)
  const hasData = names.length > foreignEntries.length
  if (hasData && !(await isDataDirectory(dataDir))) {
    throw new UsageError(`${dataDir} is not a data directory of Stowage. Set --data-dir to the one of the server.`)
  }
  const server = await findRunningServer(dataDir)
  const record = await readServerRecord(dataDir)
  const volumes = hasData ? await findVolumes(dataDir, await readStore(dataDir, options.clock)) : []
  const { deletedVolumes, keptVolumes } = divideVolumes(volumes, options)
  return {
    dataDir,
    isEmpty: !hasData && processes.length + mounts.length + loops.length === 0,
    ...(server ? { serverPid: server.pid } : {}),
    processes: processes.map(({ pid, command }) => ({ pid, command })),
    mounts: mounts.map(({ target }) => target),
    loopDevices: loops.map(({ device }) => device),
    deletedVolumes,
    keptVolumes,
    contexts: (await readAddedContexts(dataDir)).map(({ file, context }) => ({ file, context })),
    foreignEntries,
    ...(record && record.pkiDir !== join(options.dataDir, 'pki') ? { outerPkiDir: record.pkiDir } : {}),
  }
}

export interface ResetResult extends ReleaseCounts {
  readonly dataDir: string
  readonly stoppedPid?: number
  readonly deletedVolumes: readonly VolumeOnDisk[]
  readonly keptVolumes: readonly VolumeOnDisk[]
  /** Contexts that could not be removed from a kubeconfig, with the reason. */
  readonly problems: readonly string[]
}

/** Carries out a plan. Also releases and deletes resources that were created after the plan. */
export async function reset(
  { dataDir }: Pick<ResetPlan, 'dataDir'>,
  { includesRetained, clock }: Omit<ResetOptions, 'dataDir'>,
): Promise<ResetResult> {
  const stoppedPid = await stopOrKill(dataDir, clock)
  // Read the store before locking it: while a process holds the lock, the file is copied without the check for damage.
  const content = await readStore(dataDir, clock)
  const lock = await lockStore(dataDir)
  try {
    const { outerDirs } = await readMachineState(dataDir)
    const releaseCounts = await releaseMachine(dataDir, { clock })
    const { deletedVolumes, keptVolumes } = divideVolumes(await findVolumes(dataDir, content), { includesRetained })
    const problems = await removeAddedContexts(dataDir, { clock })
    await deleteData(dataDir, new Set(keptVolumes.map(({ path }) => path)))
    for (const dir of outerDirs) await removeTree(dir)
    return { dataDir, ...(stoppedPid ? { stoppedPid } : {}), ...releaseCounts, deletedVolumes, keptVolumes, problems }
  } finally {
    await lock?.release()
  }
}

const readStore = (dataDir: string, clock: Clock): Promise<StoreContent> =>
  readStoredObjects({ dataDir, pkiDir: join(dataDir, 'pki'), clock }).catch((error: Error) => ({
    problem: error.message,
  }))

function divideVolumes(volumes: readonly VolumeOnDisk[], { includesRetained }: Pick<ResetOptions, 'includesRetained'>) {
  const isKept = ({ keepReason }: VolumeOnDisk) => !includesRetained && keepReason !== undefined
  return {
    deletedVolumes: volumes.filter((volume) => !isKept(volume)),
    keptVolumes: volumes.filter(isKept),
  }
}

/** Returns the PID of the server that was running, if any. */
async function stopOrKill(dataDir: string, clock: Clock): Promise<number | undefined> {
  const server = await findRunningServer(dataDir)
  if (server) {
    sendSignal(server, 'SIGTERM')
    if (!(await waitForExit(server, { timeoutMs: STOP_MS_MAX, clock }))) {
      sendSignal(server, 'SIGKILL')
      await waitForExit(server, { timeoutMs: KILL_MS_MAX, clock })
    }
  }
  await requireUnusedStore(dataDir)
  return server?.pid
}

/** Locks the store, so that no server starts on it during the reset. Returns undefined if there is no store. */
async function lockStore(dataDir: string) {
  const dir = storeDirOf(dataDir)
  if (!(await listNames(dataDir)).includes('store')) return undefined
  return lockDirectory(dir).catch((error: Error) => {
    throw new Error(`${error.message} If a supervisor has started the server again, stop the supervisor first.`)
  })
}
