// Collects the status of a data directory from its files, its server record, the kernel's tables and, if the server runs,
// the API.
import { X509Certificate } from 'node:crypto'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { readTextIfPresent } from '../../../base/files.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { kubeconfigOf } from '../../../processes/server/data-directory.ts'
import { findRunningServer, readServerRecord, type ServerRecord } from '../../../processes/server/server-record.ts'
import { storeDirOf } from '../../../processes/store-location.ts'
import { STORE_FILE } from '../../../store/index.ts'
import { readMachineState } from '../reset/machine-state.ts'
import { isStoreInUse } from '../stop/stop-server.ts'
import { type ApiStatus, queryServer } from './query-server.ts'

export interface Status {
  readonly dataDir: string
  readonly isRunning: boolean
  /** Whether the server runs and /readyz reports no failure. */
  readonly isHealthy: boolean
  /** Why the server is not healthy: failed checks of /readyz, or why it or its API cannot be read. */
  readonly problems: readonly string[]
  readonly server?: RunningProcess
  readonly store?: StoreStatus
  /** Holder of the lease of the controllers. Absent with an embedded store, which needs no lease. */
  readonly leader?: string
  readonly nodes?: ApiStatus['nodes']
  readonly drivers?: ApiStatus['drivers']
  readonly certificates: readonly CertificateStatus[]
  /** Counts of what the nodes of the data directory use on this machine, also while no server runs. */
  readonly machine: { readonly podProcesses: number; readonly mounts: number; readonly loopDevices: number }
}

export interface RunningProcess extends Pick<ServerRecord, 'pid' | 'command' | 'version' | 'startTime' | 'url'> {
  readonly uptimeSeconds: number
}

export interface StoreStatus {
  readonly kind: 'embedded' | 'etcd'
  readonly bytes?: number
  readonly objects?: number
  readonly revision?: number
}

export interface CertificateStatus {
  readonly name: string
  readonly expires: string
  readonly isExpired: boolean
}

export async function readStatus({
  dataDir,
  clock,
}: {
  readonly dataDir: string
  readonly clock: Clock
}): Promise<Status> {
  await requireReadable(dataDir)
  const server = await findRunningServer(dataDir)
  const pkiDir = server?.pkiDir ?? join(dataDir, 'pki')
  const fileBytes = await sizeOf(join(storeDirOf(dataDir), STORE_FILE))
  const { processes, mounts, loops } = await readMachineState(await realpath(dataDir).catch(() => dataDir))
  const commonFields = {
    dataDir,
    certificates: await readCertificates(pkiDir, clock),
    machine: {
      podProcesses: processes.filter(({ kind }) => kind === 'pod').length,
      mounts: mounts.length,
      loopDevices: loops.length,
    },
  }
  if (!server) {
    const isRunning = await isStoreInUse(dataDir)
    const problem = isRunning ? UNIDENTIFIED_SERVER : await describeStoppedServer(dataDir)
    const store: StoreStatus | undefined = fileBytes === undefined ? undefined : { kind: 'embedded', bytes: fileBytes }
    return { ...commonFields, isRunning, isHealthy: false, problems: [problem], ...(store ? { store } : {}) }
  }
  const api = await queryServer({ server, kubeconfig: kubeconfigOf(dataDir), clock })
  const { leader, nodes, drivers, problems, storeBytes = fileBytes, objects, revision } = api
  const { pid, command, version, startTime, url } = server
  return {
    ...commonFields,
    isRunning: true,
    isHealthy: problems.length === 0,
    problems,
    server: {
      ...{ pid, command, version, startTime, ...(url === undefined ? {} : { url }) },
      uptimeSeconds: Math.max(0, Math.round((clock.nowMs() - Date.parse(startTime)) / 1_000)),
    },
    store: { kind: server.store, ...definedFields({ bytes: storeBytes, objects, revision }) },
    ...definedFields({ leader, nodes, drivers }),
  }
}

/** A missing directory is not an error: nothing runs there. */
async function requireReadable(dataDir: string): Promise<void> {
  await readdir(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return
    const remedy = error.code === 'EACCES' ? ' Run the command as the owner of the directory or as root.' : ''
    throw new Error(`Cannot read the data directory ${dataDir}: ${error.message}.${remedy}`)
  })
}

const UNIDENTIFIED_SERVER =
  'running, but this command cannot find its process: it is starting, or runs in another container or PID namespace, where ' +
  '`stowage status` shows more'

async function describeStoppedServer(dataDir: string): Promise<string> {
  const record = await readServerRecord(dataDir)
  return record
    ? `not running: the last process (pid ${record.pid}, started ${record.startTime}) did not stop cleanly`
    : 'not running'
}

const CERTIFICATES = ['ca', 'serving', 'admin', 'viewer']

async function readCertificates(pkiDir: string, clock: Clock): Promise<CertificateStatus[]> {
  const texts = await Promise.all(CERTIFICATES.map((name) => readTextIfPresent(join(pkiDir, `${name}.crt`))))
  return CERTIFICATES.flatMap((name, index) => {
    const text = texts[index]
    if (text === undefined) return []
    const expiresMs = Date.parse(new X509Certificate(text).validTo)
    return [{ name, expires: timestamp(expiresMs), isExpired: expiresMs <= clock.nowMs() }]
  })
}

const sizeOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ size }) => size,
    () => undefined,
  )

function definedFields<T extends object>(fields: T): Partial<{ [K in keyof T]: Exclude<T[K], undefined> }> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}
