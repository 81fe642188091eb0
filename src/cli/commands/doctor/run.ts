// Runs `stowage doctor`: connects to the API server and the driver, runs the checks, and prints the report. Throws ExitError
// with code 1 if a check found a problem.
import { ApiError } from '../../../api/status-error.ts'
import { silentLog } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { createTransport } from '../../../client/http/transport.ts'
import { type Connection, httpClient } from '../../../client/index.ts'
import { CsiError, connectDriver, readDriverFacts } from '../../../csi/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { parseDataDir } from '../../flags/common.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { type PrintedComponent, selectRules } from '../rbac/select-rules.ts'
import { type Check, type DoctorContext, type DriverSocket, getDriverFacts, type Subject } from './check.ts'
import { CHECKS } from './checks/index.ts'
import { createCluster } from './cluster.ts'
import { formatReport } from './format-report.ts'
import { probeServer, type VersionResponse } from './probe-server.ts'
import { type CheckReport, createReport, describeUnreadable, type Report, runChecks } from './report.ts'

interface DoctorFlags {
  readonly driver?: string
  readonly csiAddress?: string
  readonly kubeconfig?: string
  readonly component?: PrintedComponent
  readonly features?: readonly string[]
  readonly namespace?: string
  readonly as?: string
  readonly dataDir?: string
  readonly output: OutputFormat
}

interface DoctorDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly hasColors: boolean
}

const TIMEOUT_MS = 10_000
const USER_AGENT = 'stowage-doctor'

export async function runDoctor(flags: DoctorFlags, deps: DoctorDeps): Promise<void> {
  const subject = readSubject(flags)
  const { connection } = await loadClientConfig(flags.kubeconfig, deps)
  const report = await examineCluster(connection, { ...flags, subject }, deps)
  deps.write(await formatOutput(flags.output, report, () => formatReport(report, deps)))
  if (report.counts.error + report.counts.warning > 0) throw new ExitError(1)
}

export async function examineCluster(
  connection: Connection,
  flags: Pick<DoctorFlags, 'driver' | 'csiAddress' | 'dataDir'> & { readonly subject?: Subject },
  deps: Pick<DoctorDeps, 'clock' | 'signal'>,
): Promise<Report> {
  const { clock, signal } = deps
  const options = { connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT }
  const transport = createTransport(options)
  const client = httpClient(options)
  try {
    const socket = flags.csiAddress === undefined ? undefined : await readSocket(flags.csiAddress, deps)
    const driver = flags.driver ?? getDriverFacts({ socket })?.name
    const { subject, dataDir } = flags
    const createContext = (server: VersionResponse): DoctorContext => ({
      ...{ client, cluster: createCluster(client, signal), connection, clock, server, dataDir: parseDataDir(dataDir) },
      ...(driver ? { driver } : {}),
      ...(socket ? { socket } : {}),
      ...(subject ? { subject } : {}),
    })
    const response = await probeServer(transport, clock, signal).catch((error: unknown) => {
      if (error instanceof ApiError) return error
      throw error
    })
    if (response instanceof ApiError)
      return await examineWithoutServer(createContext(createEmptyResponse(deps)), response)
    const context = createContext(response)
    return createReport(context, await runChecks(CHECKS, context))
  } finally {
    transport.close()
    client.close()
  }
}

const createEmptyResponse = ({ clock }: Pick<DoctorDeps, 'clock'>): VersionResponse => ({
  sentMs: clock.nowMs(),
  receivedMs: clock.nowMs(),
})

/**
 * Runs the checks that need no server. Throws the failure of the server unless one of them finds an error, such as an
 * expired certificate.
 */
async function examineWithoutServer(context: DoctorContext, failure: ApiError): Promise<Report> {
  const canRun = ({ id }: Check) => id === 'certificates' || id === 'disk'
  const reports = await runChecks(CHECKS.filter(canRun), context)
  const hasExplanation = reports.some(({ findings }) => findings.some(({ status }) => status === 'error'))
  if (!hasExplanation) throw new UsageError(failure.message) // for exit code 2
  const checks = CHECKS.map(
    ({ id, title }): CheckReport =>
      reports.find((report) => report.id === id) ?? { id, title, findings: [describeUnreadable(failure)] },
  )
  return createReport(context, checks)
}

/** Reads what the driver reports. A failed call is a finding, not an error of the command. */
async function readSocket(
  address: string,
  { clock, signal }: Pick<DoctorDeps, 'clock' | 'signal'>,
): Promise<DriverSocket> {
  const driver = connectDriver({ address, clock, log: silentLog, timeoutMs: TIMEOUT_MS })
  try {
    return { address, facts: await readDriverFacts(driver, signal) }
  } catch (error) {
    if (!(error instanceof CsiError)) throw error
    return { address, facts: { problem: error.message } }
  } finally {
    driver.close()
  }
}

function readSubject({ component, features, namespace, as: user }: DoctorFlags): Subject | undefined {
  if (component === undefined) {
    if (user !== undefined || features !== undefined)
      throw new UsageError('--as and --features require --component, which selects the permissions to check.')
    return undefined
  }
  selectRules(component, features) // rejects unknown features
  return {
    component,
    ...(namespace ? { namespace } : {}),
    ...(features ? { features } : {}),
    ...(user ? { user } : {}),
  }
}
