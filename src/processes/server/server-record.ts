// Records in the data directory which process serves it, so that `stowage status`, `stop` and `reset` find that process. The
// record of a killed process remains, and is recognized as stale.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { stowageVersion } from '../../apiserver/version.ts'
import type { Clock } from '../../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import { timestamp } from '../../base/timestamps.ts'
import { identifyProcess, isRunning, type ProcessIdentity } from '../../host/process-identity.ts'

export interface ServerRecord extends ProcessIdentity {
  readonly version: string
  readonly command: 'up' | 'server'
  readonly startTime: string
  readonly store: 'embedded' | 'etcd'
  /** Directory of keys and certificates. */
  readonly pkiDir: string
  /** Address of the API; absent until it is ready. */
  readonly url?: string
}

export const SERVER_RECORD_FILE = 'server.json'

export interface WriteServerRecordOptions {
  readonly dataDir: string
  readonly pkiDir: string
  readonly runsControllers: boolean
  readonly isStoreShared: boolean
  readonly clock: Clock
}

export interface WrittenServerRecord {
  /** Adds the address of the API to the record. */
  setReady(url: string): Promise<void>
  remove(): Promise<void>
}

/** With an embedded store, call this only while holding the store's lock. */
export async function writeServerRecord(options: WriteServerRecordOptions): Promise<WrittenServerRecord> {
  const { dataDir, pkiDir, runsControllers, isStoreShared, clock } = options
  const path = join(dataDir, SERVER_RECORD_FILE)
  const record: ServerRecord = {
    ...(await identifyProcess(process.pid)),
    version: stowageVersion,
    command: runsControllers ? 'up' : 'server',
    startTime: timestamp(clock.nowMs()),
    store: isStoreShared ? 'etcd' : 'embedded',
    pkiDir,
  }
  const write = (content: ServerRecord) => writePrivateFile(path, `${JSON.stringify(content)}\n`)
  await write(record)
  return {
    setReady: (url) => write({ ...record, url }),
    async remove() {
      // Servers on etcd may share a data directory: do not remove another process's record.
      const currentRecord = await readServerRecord(dataDir).catch(() => undefined)
      if (currentRecord?.pid === record.pid && currentRecord.startTicks === record.startTicks)
        await rm(path, { force: true }).catch(() => {}) // a record that remains is recognized as stale
    },
  }
}

/** Returns undefined if there is no record, or if it is damaged. */
export async function readServerRecord(dataDir: string): Promise<ServerRecord | undefined> {
  const text = await readTextIfPresent(join(dataDir, SERVER_RECORD_FILE))
  if (text === undefined) return undefined
  try {
    const record: unknown = JSON.parse(text)
    return isServerRecord(record) ? record : undefined
  } catch {
    return undefined
  }
}

/** Returns the record if its process still runs. */
export async function findRunningServer(dataDir: string): Promise<ServerRecord | undefined> {
  const record = await readServerRecord(dataDir)
  return record && isRunning(record) ? record : undefined
}

function isServerRecord(value: unknown): value is ServerRecord {
  if (typeof value !== 'object' || value === null) return false
  const { pid, startTicks, bootId, version, command, startTime, store, pkiDir, url } = value as Record<string, unknown>
  return (
    Number.isInteger(pid) &&
    (pid as number) > 0 &&
    [startTicks, bootId, version, pkiDir].every((field) => typeof field === 'string') &&
    (command === 'up' || command === 'server') &&
    (store === 'embedded' || store === 'etcd') &&
    typeof startTime === 'string' &&
    !Number.isNaN(Date.parse(startTime)) &&
    (url === undefined || (typeof url === 'string' && URL.canParse(url)))
  )
}
