// Runs the checks of `stowage doctor` and collects their findings. A check that cannot read its objects has an `unknown` finding.
import { ApiError } from '../../../api/status-error.ts'
import { type Check, type DoctorContext, FINDING_STATUSES, type Finding, type FindingStatus } from './check.ts'

export interface Report {
  /** The API server's address. */
  readonly server: string
  /** The API server's version. */
  readonly version?: string
  readonly driver?: string
  readonly checks: readonly CheckReport[]
  /** The number of findings by status. */
  readonly counts: Readonly<Record<FindingStatus, number>>
}

export interface CheckReport extends Pick<Check, 'id' | 'title'> {
  readonly findings: readonly Finding[]
}

export async function runChecks(checks: readonly Check[], context: DoctorContext): Promise<CheckReport[]> {
  return Promise.all(
    checks.map(async (check) => ({ id: check.id, title: check.title, findings: await runCheck(check, context) })),
  )
}

async function runCheck(check: Check, context: DoctorContext): Promise<readonly Finding[]> {
  try {
    return await check.run(context)
  } catch (error) {
    if (error instanceof ApiError) return [describeUnreadable(error)]
    throw error
  }
}

/** Returns the finding for a failed request, for example because the user lacks permission. */
export const describeUnreadable = ({ code, message }: ApiError): Finding => ({
  status: 'unknown',
  message: `Not checked: ${message}`,
  ...(code === 403 ? { remedy: 'Run the command as a user with this permission.' } : {}),
})

export function createReport(
  { connection, server, driver }: Pick<DoctorContext, 'connection' | 'server' | 'driver'>,
  checks: readonly CheckReport[],
): Report {
  const findings = checks.flatMap((check) => check.findings)
  const count = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length
  const counts = Object.fromEntries(FINDING_STATUSES.map((status) => [status, count(status)])) as Report['counts']
  const { version } = server
  return { server: connection.server, ...(version ? { version } : {}), ...(driver ? { driver } : {}), checks, counts }
}
